"""``--input`` and ``--input-shape``: what a user's model is called with, in words."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

from hwprof.errors import UsageError
from hwprof.workload.spec import FLOATS, INTEGERS, InputSpec

MOST_ELEMENTS: Final = 1 << 40

SYNTAX: Final = "[NAME:]SHAPE[:DTYPE[:LOW..HIGH]]"

_SHAPE: Final = re.compile(r"\d+([x,]\d+)*", re.ASCII)
_RANGE: Final = re.compile(r"(?P<low>[-+.\de]+?)\.\.(?P<high>[-+.\de]+)", re.ASCII)
_EXAMPLE: Final = "write it like input_ids:1x128:int64:0..30000"


def parse_inputs(shape: str | None, inputs: Sequence[str]) -> tuple[InputSpec, ...]:
    """What the two options ask for; raises ``UsageError``."""
    if shape is None:
        parsed = tuple(map(parse_input, inputs))
        names = [one.name for one in parsed if one.name is not None]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UsageError(f"--input {twice} is given twice")
        return parsed
    if inputs:
        raise UsageError("--input-shape beside --input", f"--input {shape} for that one, without a name")
    return (InputSpec(shape=_sizes("--input-shape", shape)),)


def parse_input(text: str) -> InputSpec:
    """``input_ids:1x128:int64:0..30000``; all but the shape may be left out."""
    words = text.split(":")
    name = words.pop(0) if not _SHAPE.fullmatch(words[0]) else None
    if not words or len(words) > 3 or (name is not None and not name.isidentifier()):
        raise UsageError(f"--input {text!r} is not {SYNTAX}", _EXAMPLE)
    dtype = words[1] if len(words) > 1 else "float32"
    if dtype not in (*FLOATS, *INTEGERS):
        raise UsageError(f"--input {text}: there is no type {dtype}", f"one of {', '.join((*FLOATS, *INTEGERS))}")
    drawn_from = _range(text, dtype, words[2]) if len(words) > 2 else None
    return InputSpec(shape=_sizes("--input", words[0]), name=name, dtype=dtype, range=drawn_from)


def _sizes(option: str, text: str) -> tuple[int, ...]:
    given = text.replace("x", ",")
    shape = tuple(map(int, given.split(","))) if _SHAPE.fullmatch(text) and len(text) < 1000 else ()
    if not shape or min(shape) < 1:
        raise UsageError(f"{option} {text!r} is not a shape", "write it like 1,3,224,224")
    if math.prod(shape) > MOST_ELEMENTS:
        raise UsageError(f"{option} {text} has more than {MOST_ELEMENTS} elements")
    return shape


def _range(text: str, dtype: str, words: str) -> tuple[float, float]:
    """Both ends; of integers whole numbers that the type has."""
    match = _RANGE.fullmatch(words)
    try:
        low, high = (float(match[end]) for end in ("low", "high")) if match else (1.0, 0.0)
    except ValueError:
        low, high = 1.0, 0.0
    if not (low <= high and math.isfinite(high - low)):
        raise UsageError(f"--input {text!r}: {words!r} is not a range", "write it like 0..30000, lower end first")
    least, most = _bounds(dtype)
    if low < least or high > most or (dtype in INTEGERS and (low % 1 or high % 1)):
        raise UsageError(f"--input {text!r}: {dtype} has no values from {words.replace('..', ' to ')}")
    return low, high


def _bounds(dtype: str) -> tuple[float, float]:
    """What a type can hold, of 64 bits what a float holds exactly."""
    if dtype in FLOATS:
        return -FLOATS[dtype], FLOATS[dtype]
    if dtype == "bool":
        return 0, 1
    bits = min(int(dtype.lstrip("uint")), 54)
    return (0, (1 << bits) - 1) if dtype.startswith("u") else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
