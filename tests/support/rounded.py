"""Documents that JSON has brought back: all of them, but for the digits that it does not write."""

from __future__ import annotations

import math
from typing import Any

import msgspec


def is_same(found: object, written: object) -> bool:
    """Whether everything in them is the same, to the last of JSON's digits."""
    return _alike(msgspec.to_builtins(found), msgspec.to_builtins(written))


def _alike(found: Any, written: Any) -> bool:
    if isinstance(written, dict):
        return isinstance(found, dict) and found.keys() == written.keys() and _all(found.values(), written.values())
    if isinstance(written, list):
        return isinstance(found, list) and _all(found, written)
    if isinstance(written, float):
        return isinstance(found, (int, float)) and math.isclose(found, written, rel_tol=1e-9)
    return type(found) is type(written) and bool(found == written)


def _all(found: Any, written: Any) -> bool:
    return len(found) == len(written) and all(map(_alike, found, written))
