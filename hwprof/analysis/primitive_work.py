"""What a primitive of oneDNN has to do, by the problem that it reports: operations, and the bytes that must move.

Operations are two a multiply-accumulate of the definition, whatever algorithm was taken and with the products of the
padding's zeros. Bytes are those of source, weights, bias and destination once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final, NamedTuple

SIZES: Final = {"f64": 8, "f32": 4, "s32": 4, "f16": 2, "bf16": 2, "s8": 1, "u8": 1}
"""Bytes of an element."""

AXES: Final = ("d", "h", "w")

_FIELD: Final = re.compile(r"([a-z]+)(\d+)")


class Work(NamedTuple):
    """Of one execution. ``bytes`` None: of a type whose size is not known."""

    flops: float
    bytes: float | None


class _Problem(NamedTuple):
    macs: int
    elements: dict[str, int]  # by tensor, as data types name them


@cache
def work(primitive: str, problem: str, data_types: str) -> Work | None:
    """``problem`` and ``data_types`` as oneDNN reports them (``mb1_ic3oc16_ih320oh160kh3…``, ``src:f32 wei:f32
    dst:f32``). None: of a primitive with other operations, or of a problem that cannot be read (sizes that were not
    known beforehand are ``*``)."""
    read = _READERS.get(primitive)
    types = dict(part.split(":", 1) for part in data_types.split() if ":" in part)
    try:
        found = read(problem) if read is not None else None
        return None if found is None else Work(2.0 * found.macs, _bytes(found.elements, types))
    except (KeyError, ValueError, OverflowError):
        return None


def _bytes(elements: Mapping[str, int], types: Mapping[str, str]) -> float | None:
    sizes = [(number, SIZES.get(types[tensor])) for tensor, number in elements.items() if tensor in types]
    known = [number * size for number, size in sizes if size is not None]
    return float(sum(known)) if known and len(known) == len(sizes) else None


def _convolution(problem: str) -> _Problem:
    """Of each output the products with its inputs."""
    sizes = _fields(problem)
    macs = _along(sizes, "o") * _kernel(sizes) * sizes["mb"] * sizes["oc"] * sizes["ic"] // sizes.get("g", 1)
    return _Problem(macs, _tensors(sizes))


def _deconvolution(problem: str) -> _Problem:
    """Of each input those with the outputs that it is spread over."""
    sizes = _fields(problem)
    macs = _along(sizes, "i") * _kernel(sizes) * sizes["mb"] * sizes["oc"] * sizes["ic"] // sizes.get("g", 1)
    return _Problem(macs, _tensors(sizes))


def _tensors(sizes: Mapping[str, int]) -> dict[str, int]:
    return {
        "src": sizes["mb"] * sizes["ic"] * _along(sizes, "i"),
        "wei": sizes["oc"] * sizes["ic"] * _kernel(sizes) // sizes.get("g", 1),
        "bia": sizes["oc"],
        "dst": sizes["mb"] * sizes["oc"] * _along(sizes, "o"),
    }


def _inner_product(problem: str) -> _Problem:
    sizes = _fields(problem)
    inputs = sizes["ic"] * _along(sizes, "i")
    batch, outputs = sizes["mb"], sizes["oc"]
    tensors = {"src": batch * inputs, "wei": outputs * inputs, "bia": outputs, "dst": batch * outputs}
    return _Problem(batch * inputs * outputs, tensors)


def _matmul(problem: str) -> _Problem:
    """``BATCHxMxK:BATCHxKxN``; of each other's batches one may be 1."""
    source, weights = ([int(size) for size in shape.split("x")] for shape in problem.split(":")[:2])
    if len(source) != len(weights) or len(source) < 2 or source[-1] != weights[-2]:
        raise ValueError(problem)
    batch = math.prod(max(pair) for pair in zip(source[:-2], weights[:-2], strict=True))
    rows, inner, columns = source[-2], source[-1], weights[-1]
    tensors = {
        "src": math.prod(source), "wei": math.prod(weights), "bia": columns, "dst": batch * rows * columns
    }  # fmt: skip
    return _Problem(batch * rows * inner * columns, tensors)


def _reorder(problem: str) -> _Problem:
    """No operations, but bytes."""
    elements = math.prod(int(size) for size in problem.split("x"))
    return _Problem(0, {"src": elements, "dst": elements})


_READERS: Final[Mapping[str, Callable[[str], _Problem]]] = {
    "convolution": _convolution,
    "deconvolution": _deconvolution,
    "inner_product": _inner_product,
    "matmul": _matmul,
    "reorder": _reorder,
}


def _fields(problem: str) -> dict[str, int]:
    """``g4mb2_ic8oc16_ih10oh10…`` by name; raises ``ValueError`` for what has other sizes in it."""
    if not re.fullmatch(r"(?:_?[a-z]+\d+)+", problem):
        raise ValueError(problem)
    return {name: int(value) for name, value in _FIELD.findall(problem)}


def _along(sizes: Mapping[str, int], which: str) -> int:
    """The elements of a channel of the input (``i``) or output (``o``)."""
    return math.prod(sizes.get(which + axis, 1) for axis in AXES)


def _kernel(sizes: Mapping[str, int]) -> int:
    return _along(sizes, "k")
