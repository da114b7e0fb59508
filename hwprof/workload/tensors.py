"""Tensors in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import torch

from hwprof.errors import NO_MEMORY, HwprofError, UsageError, described, first_line, is_out_of_memory
from hwprof.workload.raised_at import raised_by_users_code

BITS: Final = {torch.quint4x2: 4, torch.quint2x4: 2}
"""Of an element of types that have several in a byte; PyTorch says 1 byte of each."""

REFUSALS: Final = (RuntimeError, TypeError, ValueError, IndexError, AssertionError)
"""What layers raise that cannot take their input. Of other exceptions the input need not be the cause."""

MOST_BYTES: Final = 1 << 28
"""Of what a model gives, that is kept."""

StateDict = dict[str, torch.Tensor]
"""A model's parameters and buffers by name."""


def in_single_precision(value: torch.Tensor) -> torch.Tensor:
    """Of floating-point values; others stay."""
    return value.float() if value.is_floating_point() else value


def shape_text(tensor: torch.Tensor) -> str:
    """``1x3x640x480``; a tensor without dimensions is a ``scalar``."""
    return "x".join(map(str, tensor.shape)) or "scalar"


def shapes_text(tensors: list[torch.Tensor]) -> str:
    """``1x3x640x480 32``."""
    return " ".join(map(shape_text, tensors))


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in nested lists, tuples and dictionaries, in their order. Classes derived from these are read as they
    are: what a stranger's own iteration does is not executed, and may never end."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, (list, tuple)):
        for item in list.__iter__(value) if isinstance(value, list) else tuple.__iter__(value):
            yield from tensors_in(item)


def size_bytes(tensor: torch.Tensor) -> int:
    """Of its elements as they are kept: those of the tensors that a subclass is made of (quantised weights that pass
    for ``float32``)."""
    flatten: Any = getattr(tensor, "__tensor_flatten__", None)
    if flatten is not None:
        return sum(size_bytes(getattr(tensor, name)) for name in flatten()[0])
    if tensor.dtype in BITS:
        return -(-tensor.numel() * BITS[tensor.dtype] // 8)
    return tensor.numel() * tensor.element_size()


def input_text(tensor: torch.Tensor) -> str:
    """``1x3x640x480``, with the type where it is not the usual one: ``1x128 int64``."""
    usual = tensor.dtype is torch.float32
    return shape_text(tensor) if usual else f"{shape_text(tensor)} {str(tensor.dtype).removeprefix('torch.')}"


def refused(
    model: str, inputs: Any, error: BaseException, remedy: str = "another --imgsz", *, of_options: bool = True
) -> HwprofError:
    """The error to raise where a model cannot be called with these inputs: bad usage where they are ``of_options``, a
    failure where they are the model's own, or where the exception is none that speaks of inputs."""
    given = ", ".join(input_text(tensor) for tensor in tensors_in(inputs))
    if is_out_of_memory(error):
        return HwprofError(f"{NO_MEMORY} for {model} with the input {given}", "a smaller one")
    if not isinstance(error, REFUSALS) or isinstance(error, RecursionError):
        return HwprofError(f"{model} raised {described(error)} with the input {given}", "--debug, which shows where")
    kind = UsageError if of_options else HwprofError
    where = raised_by_users_code(error)
    why = first_line(error) if where is None else f"{described(error)} ({where})"
    return kind(f"{model} refuses the input {given}: {why}", remedy)


def without_repetition(tensor: torch.Tensor) -> torch.Tensor:
    """The part of a strided tensor that holds all of its values, without the dimensions of stride 0 (``expand``)."""
    if tensor.numel():
        for dimension, stride in reversed(list(enumerate(tensor.stride()))):
            if stride == 0:
                tensor = tensor.select(dimension, 0)
    return tensor


def arrays_of(outputs: Any) -> Iterator[np.ndarray[Any, Any]]:
    """What a model gives, tensor by tensor, as far as it is numbers, and not too many; halves as FP32."""
    left = MOST_BYTES
    for tensor in tensors_in(outputs):
        try:
            there = tensor.detach().to_dense() if tensor.layout is not torch.strided else tensor.detach()
            array = (there.float() if there.is_floating_point() else there).cpu().contiguous().numpy()
        except (RuntimeError, TypeError, NotImplementedError):  # of kinds that do not show them
            array = np.empty(0)
        left -= array.nbytes
        if left < 0:
            return
        yield array
