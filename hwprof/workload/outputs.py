"""Checksums of what a workload gives: whether two runs of it came to the same, to the bit.

Whatever a model may return has one: tensors of every kind, nested collections, numbers, text, other objects by their
attributes. What has no value (a function, an iterator, a module) counts by its type. Nothing is copied but parts of
tensors that do not lie in one piece.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import torch

PART_BYTES: Final = 1 << 20
"""Of a tensor that is copied at a time."""

DEEPEST: Final = 100
MOST_OBJECTS: Final = 100_000
"""What lies deeper, or comes later, does not count: an output may lead to half of the process."""

PARTS_OF_SPARSE: Final = ("crow_indices", "ccol_indices", "row_indices", "col_indices", "values")

Plain = (bool, int, str, bytes, bytearray, type(None), torch.dtype, torch.device)


class Outputs:
    """What one iteration gives, output by output. The last one is held until the iteration is over, whether anyone asks
    for its checksum or not: an iteration's time has no checksum in it, and memory is given back behind each alike."""

    def __init__(self, *, timed: bool) -> None:
        """``timed``: somebody asks for the iteration's time, so of several outputs nothing is added up within it."""
        self._timed = timed
        self._last: Any = None
        self._number = 0
        self._digest = _Digest()

    def add(self, output: Any) -> None:
        """An output of the model."""
        if self._number and not self._timed:
            self._digest.add(self._last)
        self._last = output
        self._number += 1

    def checksum(self) -> str | None:
        """16 hexadecimal digits, of all that were added, when they are over; None: they were too many to be held."""
        if self._timed and self._number > 1:
            return None
        if self._number:
            self._digest.add(self._last)
        return self._digest.text()


def checksum(output: Any) -> str:
    """Of one output: 16 hexadecimal digits."""
    digest = _Digest()
    digest.add(output)
    return digest.text()


class _Digest:
    """BLAKE2b over types, shapes and contents, in their order."""

    def __init__(self, within: set[int] | None = None) -> None:
        """``within``: objects that what is added is a part of."""
        self._hash = hashlib.blake2b(digest_size=8)
        self._within: set[int] = set() if within is None else within
        self._objects = 0

    def text(self) -> str:
        return self._hash.hexdigest()

    def add(self, value: Any) -> None:
        """Adds whatever it is."""
        self._objects += 1
        self._name(type(value).__qualname__)
        if isinstance(value, torch.Tensor):
            self._tensor(value)
        elif isinstance(value, Plain):
            self._name(repr(value))
        elif isinstance(value, (float, complex)):
            self._hash.update(struct.pack("<2d", value.real, value.imag))
        elif isinstance(value, np.generic) or (isinstance(value, np.ndarray) and not value.dtype.hasobject):
            self._array(np.asarray(value))
        elif id(value) not in self._within and len(self._within) < DEEPEST and self._objects < MOST_OBJECTS:
            self._within.add(id(value))
            self._parts(value)
            self._within.discard(id(value))

    def _name(self, text: str) -> None:
        data = text.encode(errors="surrogatepass")
        self._hash.update(len(data).to_bytes(8, "little") + data)

    def _parts(self, value: Any) -> None:
        if isinstance(value, (set, frozenset)):  # in no order
            for part in sorted(self._of_part(one) for one in value):
                self._name(part)
            return
        try:
            parts = list(_parts_of(value))
        except Exception:  # the model's own code
            parts = []
        self._name(f"{len(parts)} parts")
        for part in parts:
            self.add(part)

    def _of_part(self, value: Any) -> str:
        digest = _Digest(self._within)
        digest.add(value)
        return digest.text()

    def _array(self, array: np.ndarray[Any, Any]) -> None:
        self._name(f"{array.dtype.str} {array.shape}")
        self._hash.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)

    def _tensor(self, tensor: torch.Tensor) -> None:
        self._name(f"{tensor.dtype} {tensor.layout} {tensor.device.type}")
        try:
            self._contents(tensor.detach())
        except (RuntimeError, TypeError, NotImplementedError, AttributeError):  # of kinds that do not show them
            self._name(str(type(tensor)))

    def _contents(self, tensor: torch.Tensor) -> None:
        if tensor.is_nested:
            for part in tensor.unbind():
                self._tensor(part)
            return
        self._name(str(tuple(tensor.shape)))
        if tensor.device.type == "meta":
            return
        if tensor.layout is torch.sparse_coo:
            self._contents(tensor._indices())
            self._contents(tensor._values())
        elif tensor.layout is not torch.strided:
            for part in _parts_of_layout(tensor):
                self._contents(part)
        elif tensor.is_quantized:
            self._contents(tensor.int_repr())
            for part in _scales(tensor):
                self.add(part)
        else:
            self._dense(tensor.cpu().resolve_conj().resolve_neg())

    def _dense(self, tensor: torch.Tensor) -> None:
        """Part by part where it does not lie in one piece."""
        size = tensor.numel() * tensor.element_size()
        if not size:
            return
        if tensor.is_contiguous() or size <= PART_BYTES:
            self._hash.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
            return
        rows = max(1, PART_BYTES * len(tensor) // size)
        if len(tensor) == 1:
            self._dense(tensor[0])
            return
        for first in range(0, len(tensor), rows):
            self._dense(tensor[first : first + rows])


def _parts_of(value: Any) -> Iterator[Any]:
    """What it consists of."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield key
            yield item
    elif isinstance(value, (list, tuple)):
        yield from value
    elif isinstance(value, np.ndarray):
        yield value.shape
        yield from value.reshape(-1).tolist()
    elif not isinstance(value, (type, torch.nn.Module)) and not callable(value):
        yield from sorted(getattr(value, "__dict__", {}).items(), key=lambda item: str(item[0]))
        for name in sorted(_slots(type(value))):
            yield getattr(value, name, None)


def _slots(kind: type) -> set[str]:
    named = [getattr(base, "__slots__", ()) for base in kind.__mro__ if base.__module__ != "builtins"]
    slots = {name for names in named for name in ([names] if isinstance(names, str) else names)}
    return slots - {"__dict__", "__weakref__"}


def _parts_of_layout(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    if tensor.is_mkldnn:
        yield tensor.to_dense()
        return
    for name in PARTS_OF_SPARSE:
        try:
            part: torch.Tensor = getattr(tensor, name)()
        except RuntimeError:  # another layout's
            continue
        yield part


def _scales(tensor: torch.Tensor) -> Iterator[Any]:
    if tensor.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        yield tensor.q_scale()
        yield tensor.q_zero_point()
    else:
        yield tensor.q_per_channel_scales()
        yield tensor.q_per_channel_zero_points()
