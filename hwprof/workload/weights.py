"""What modules multiply with: how many weights, and in how many bytes they are kept.

PyTorch's parameters; weights that quantised modules keep packed in objects of C++ (``torch.ScriptObject``), which are
no parameters; of a layer that multiplies and has no matrix among these, its matrices in buffers and plain tensors.
Scales and zero points are not counted. Packed weights are asked for (``unpack``, ``__getstate__``), which copies them:
each module's once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import torch
from torch import nn

from hwprof.workload.tensors import size_bytes

READABLE: Final = frozenset(
    f"__torch__.torch.classes.{name}"
    for name in (
        "quantized.LinearPackedParamsBase",
        "quantized.Conv2dPackedParamsBase",  # of one dimension, too
        "quantized.Conv3dPackedParamsBase",
        "quantized.EmbeddingPackedParamsBase",
        "rnn.CellParamsBase",
    )
)
"""Classes of packed weights whose tensors are those that they are asked for."""

HALF_BYTES: Final = 2
"""An element of what FBGEMM packs as float16, and gives back as float32."""

MATRIX: Final = 2
"""The fewest dimensions of a tensor that is multiplied with, and no bias, statistic or scale."""


class Weights(NamedTuple):
    """How many, and their size as they are kept."""

    number: int
    bytes: int


class _Held(NamedTuple):
    """One tensor, or what one object has packed."""

    key: object  # the same where modules share it
    weights: Weights | None  # None: not to be read
    matrix: bool
    of: str  # the class of what cannot be read


class WeightReader:
    """Reads each module once. What a module has is not to change meanwhile."""

    def __init__(self) -> None:
        self._own: dict[nn.Module, list[_Held]] = {}
        self._with_tensors: set[nn.Module] = set()

    def take_tensors(self, layer: nn.Module) -> None:
        """``layer``, a leaf, multiplies: where it has no matrix to do so with, its buffers and plain tensors are."""
        if not any(held.matrix or held.weights is None for held in self._held(layer)):
            self._with_tensors.update(layer.modules())

    def weights(self, module: nn.Module) -> Weights | None:
        """Of a module and everything below it, each once; None where some cannot be read."""
        found = self._held(module)
        known = [held.weights for held in found if held.weights is not None]
        if len(known) < len(found):
            return None
        return Weights(sum(one.number for one in known), sum(one.bytes for one in known))

    def unreadable(self, module: nn.Module) -> list[str]:
        """The classes of what is in it, or below it, and cannot be read."""
        return sorted({held.of for held in self._held(module) if held.weights is None})

    def _held(self, module: nn.Module) -> list[_Held]:
        found: dict[object, _Held] = {}
        for part in _parts(module):
            if part not in self._own:
                self._own[part] = list(_own(part))
            tensors = _tensors(part) if part in self._with_tensors else ()
            found |= {held.key: held for held in (*self._own[part], *tensors)}
        return list(found.values())


def _parts(module: nn.Module) -> Iterator[nn.Module]:
    """The module and all below it, each once; ``modules()`` hands each one up through all levels above it."""
    seen: set[nn.Module] = set()
    left = [module]
    while left:
        part = left.pop()
        if part not in seen:
            seen.add(part)
            yield part
            left.extend(part.children())


def _own(module: nn.Module) -> Iterator[_Held]:
    """Parameters and packed weights of no module below it."""
    for parameter in module.parameters(recurse=False):
        yield _of_tensor(parameter)
    for name, packed in _objects(module):
        yield _of_object(packed, (module, name))
    if isinstance(module, torch.jit.ScriptModule) and not any(True for _ in (*module.children(), *module.parameters())):
        yield from _constants(module)


def _tensors(module: nn.Module) -> Iterator[_Held]:
    """Its matrices that are no parameters."""
    for tensor in (*module.buffers(recurse=False), *vars(module).values()):
        if isinstance(tensor, torch.Tensor) and tensor.ndim >= MATRIX:
            yield _of_tensor(tensor)


def _objects(module: Any) -> Iterator[tuple[str, torch.ScriptObject]]:
    """The objects of C++ among its attributes; TorchScript keeps these where Python does not see them."""
    attributes = vars(module)
    if isinstance(module, torch.jit.ScriptModule):
        concrete = attributes.get("_concrete_type")
        attributes = {name: module._c.getattr(name) for name in (concrete.get_attributes() if concrete else ())}
    for name, value in attributes.items():
        if isinstance(value, torch.ScriptObject):
            yield name, value


def _constants(module: Any) -> Iterator[_Held]:
    """What a frozen TorchScript module has made of its weights."""
    try:
        nodes = module.graph.findAllNodes("prim::Constant")
    except (RuntimeError, AttributeError):  # it has no forward
        return
    for number, node in enumerate(nodes):
        kind = node.kindOf("value") if node.hasAttribute("value") else None
        value = node.t("value") if kind == "t" else node.ival("value") if kind == "ival" else None
        if isinstance(value, torch.Tensor) and value.ndim:
            yield _of_tensor(value)._replace(key=(module, number))
        elif isinstance(value, torch.ScriptObject):
            yield _of_object(value, (module, number))


def _of_tensor(tensor: torch.Tensor) -> _Held:
    return _Held(id(tensor), Weights(tensor.numel(), size_bytes(tensor)), tensor.ndim >= MATRIX, "")


def _of_object(packed: torch.ScriptObject, key: object) -> _Held:
    name = _class_of(packed)
    try:
        given = list(_unpacked(packed))  # all at once: the address of one that is gone is given to the next
    except (RuntimeError, AttributeError, NotImplementedError, TypeError, _UnreadableError):
        return _Held(key, None, matrix=False, of=name.rpartition("classes.")[2])
    tensors = {tensor.data_ptr(): weights for tensor, weights in given}.values()
    total = Weights(sum(one.number for one in tensors), sum(one.bytes for one in tensors))
    return _Held(key, total, matrix=True, of="")


class _UnreadableError(Exception):
    """An object of a class that nobody knows here."""


def _unpacked(packed: Any) -> Iterator[tuple[torch.Tensor, Weights]]:
    """Its tensors, as it gives them back; one that several objects share comes with each."""
    if _class_of(packed) not in READABLE:
        raise _UnreadableError
    given = packed.unpack() if packed._has_method("unpack") else packed.__getstate__()
    for value in _flat(given):
        if isinstance(value, torch.ScriptObject):
            yield from _unpacked(value)
        elif isinstance(value, torch.Tensor):
            half = value.ndim >= MATRIX and value.dtype is torch.float32
            yield value, Weights(value.numel(), HALF_BYTES * value.numel() if half else size_bytes(value))


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def _class_of(packed: Any) -> str:
    name: str = packed._type().qualified_name()
    return name
