"""The checksum of whatever a model may return: tensors of every kind, nested collections, numbers, text, other objects
by their attributes. What has no value (a function, an iterator, a module) counts by its type.

Outputs are a stranger's objects. None of their own code is executed: a subclass is read as its base is, an object by
the attributes that it holds. Nothing is copied but parts of tensors that do not lie in one piece, and what is repeated
by a stride of 0 counts once. What is larger than ``MOST_BYTES`` or ``MOST_VALUES``, or cannot be read, has no checksum.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Iterator
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any, Final

import numpy as np
import torch

from hwprof.workload.tensors import without_repetition

PART_BYTES: Final = 1 << 20
"""Of a tensor that is copied at a time."""

MOST_BYTES: Final = 1 << 30
"""Of contents, of one iteration: seconds."""

MOST_VALUES: Final = 1_000_000

DEEPEST: Final = 100
MOST_OBJECTS: Final = 100_000
"""Of collections and objects, what lies deeper, or comes later, does not count: one may lead to half of the process."""

PARTS_OF_SPARSE: Final = ("crow_indices", "ccol_indices", "row_indices", "col_indices", "values")

Collection = (dict, list, tuple, set, frozenset)

_bases: Final = type.__dict__["__mro__"].__get__
_names_of: Final = type.__dict__["__dict__"].__get__
_name_of: Final = type.__dict__["__qualname__"].__get__
"""Of a class, whatever its metaclass says."""


class TooMuchError(Exception):
    """More than is added up."""


class Checksum:
    """BLAKE2b over types, shapes and contents, in their order."""

    def __init__(self) -> None:
        self._digest = _Digest(_Bounds())
        self._lost = False

    def add(self, value: Any) -> None:
        """Adds whatever it is. Nothing that goes wrong in it leaves this method, but Ctrl-C."""
        try:
            self._digest.add(value)
        except KeyboardInterrupt:
            raise
        except BaseException:  # libraries panic with what is no Exception
            self._lost = True

    def text(self) -> str | None:
        """16 hexadecimal digits; None where something that was added has no checksum."""
        return None if self._lost else self._digest.text()


class _Bounds:
    """How much was added, and what it is a part of."""

    def __init__(self) -> None:
        self.within: set[int] = set()
        self.objects = 0
        self._values = 0
        self._bytes = 0

    def count(self, size_bytes: int) -> None:
        """One more value. Raises ``TooMuchError``."""
        self._values += 1
        self._bytes += size_bytes
        if self._values > MOST_VALUES or self._bytes > MOST_BYTES:
            raise TooMuchError


class _Digest:
    def __init__(self, bounds: _Bounds) -> None:
        self._hash = hashlib.blake2b(digest_size=8)
        self._bounds = bounds

    def text(self) -> str:
        return self._hash.hexdigest()

    def add(self, value: Any) -> None:
        kind = type(value)
        self._data(_name_of(kind).encode(errors="surrogatepass"))
        if issubclass(kind, torch.Tensor):
            self._tensor(_plain(value))
        elif issubclass(kind, (np.ndarray, np.generic)):
            self._array(np.ndarray.view(value, np.ndarray) if issubclass(kind, np.ndarray) else np.asarray(value))
        elif (written := _written(kind)) is not None:
            self._data(written(value))
        elif not issubclass(kind, (type, torch.nn.Module)) and (issubclass(kind, Collection) or not callable(value)):
            self._parts(value)

    def _data(self, data: bytes) -> None:
        self._bounds.count(len(data))
        self._hash.update(len(data).to_bytes(8, "little"))
        self._hash.update(data)

    def _name(self, text: str) -> None:
        self._data(text.encode())

    def _parts(self, value: Any) -> None:
        bounds = self._bounds
        if id(value) in bounds.within or len(bounds.within) >= DEEPEST or bounds.objects >= MOST_OBJECTS:
            return
        bounds.objects += 1
        bounds.within.add(id(value))
        if issubclass(type(value), (set, frozenset)):  # in no order
            base = set if issubclass(type(value), set) else frozenset
            self._all(sorted(self._of_part(one) for one in base.__iter__(value)))
        else:
            self._all(_parts_of(value))
        bounds.within.discard(id(value))

    def _all(self, parts: Iterable[Any]) -> None:
        number = 0
        for part in parts:
            number += 1
            self.add(part)
        self._name(f"{number} parts")

    def _of_part(self, value: Any) -> str:
        digest = _Digest(self._bounds)
        digest.add(value)
        return digest.text()

    def _array(self, array: np.ndarray[Any, Any]) -> None:
        self._name(f"{array.dtype.str} {array.shape}")
        if array.dtype.hasobject:
            self._all(array.flat)
            return
        self._bounds.count(array.nbytes)
        self._hash.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)

    def _tensor(self, tensor: torch.Tensor) -> None:
        self._name(f"{tensor.dtype} {tensor.layout} {tensor.device.type}")
        try:
            self._contents(tensor.detach())
        except (RuntimeError, TypeError, NotImplementedError, AttributeError):  # of kinds that do not show them
            self._name("no contents")

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
            self._bounds.count(tensor.numel() * tensor.element_size())
            self._contents(tensor.int_repr())
            for part in _scales(tensor):
                self.add(part)
        else:
            once = without_repetition(tensor)
            self._bounds.count(once.numel() * once.element_size())
            self._dense(once.cpu().resolve_conj().resolve_neg())

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


_WRITTEN: Final[tuple[tuple[type, Callable[[Any], bytes]], ...]] = (
    (bool, lambda value: bytes([value])),
    (int, lambda value: int.__format__(value, "x").encode()),  # decimals of a large one take minutes
    (float, lambda value: struct.pack("<d", value)),
    (complex, lambda value: struct.pack("<2d", complex.real.__get__(value), complex.imag.__get__(value))),
    (str, lambda value: str.encode(value, errors="surrogatepass")),
    (bytes, lambda value: bytes.__getitem__(value, slice(None))),
    (bytearray, lambda value: bytes(memoryview(value))),
    (type(None), lambda _: b""),
    (torch.dtype, lambda value: str(value).encode()),
    (torch.device, lambda value: str(value).encode()),
)
"""How values are read: by the method of the class that it is of, not of one derived from it."""


def _written(kind: type) -> Callable[[Any], bytes] | None:
    return next((how for base, how in _WRITTEN if issubclass(kind, base)), None)


def _plain(value: torch.Tensor) -> torch.Tensor:
    """The tensor without its class, where that is more than a class of Python: a wrapper is not what it shows."""
    kind = type(value)
    if kind is torch.Tensor or kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return value
    with torch._C.DisableTorchFunctionSubclass():
        return torch.Tensor.as_subclass(value, torch.Tensor)


def _parts_of(value: Any) -> Iterator[Any]:
    """What it consists of."""
    kind = type(value)
    if issubclass(kind, dict):
        for key, item in dict.items(value):
            yield key
            yield item
    elif issubclass(kind, list):
        yield from list.__iter__(value)
    elif issubclass(kind, tuple):
        yield from tuple.__iter__(value)
    else:
        yield from sorted(_attributes(value), key=lambda item: item[0])


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object of a class of Python's holds, in its dictionary and its slots."""
    for base in _bases(type(value)):
        names = _names_of(base)
        held = names.get("__dict__")
        if type(held) is GetSetDescriptorType:
            found = held.__get__(value)
            yield from ((name, item) for name, item in dict.items(found) if type(name) is str)
        for name, slot in names.items() if "__slots__" in names else ():
            if type(slot) is MemberDescriptorType:
                try:
                    yield name, slot.__get__(value)
                except AttributeError:  # nothing is there
                    continue


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
