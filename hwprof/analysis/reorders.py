"""Layout changes: which of a layer's tensors each reorder brought into another layout.

oneDNN does not say it, but what it was for shows in the layouts of the primitive that the same call of a layer executed
beside: a reorder before it makes the layout in which that reads its weights or its input, one after it takes the layout
in which that wrote its output.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl

REORDER: Final = "reorder"
BEFORE: Final = {"wei": "weights", "src": "input"}
AFTER: Final = {"dst": "output"}
TENSORS: Final = ("input", "weights", "output")


def tensors(located: pl.DataFrame) -> pl.Series:
    """For each row of ``located`` (in ``order``) one of ``TENSORS``; null for what is no reorder, and where layouts do
    not tell."""
    computing: dict[int, list[tuple[int, dict[str, str]]]] = {}
    rows = list(located.select("span", "order", "primitive", "layouts").iter_rows())
    for span, order, primitive, layouts in rows:
        if span is not None and primitive != REORDER:
            computing.setdefault(span, []).append((order, _by_tensor(layouts)))
    tensors = [
        _tensor(order, _by_tensor(layouts), computing.get(span, ())) if primitive == REORDER else None
        for span, order, primitive, layouts in rows
    ]
    return pl.Series("tensor", tensors, dtype=pl.String)


def _tensor(order: int, reorder: Mapping[str, str], beside: Sequence[tuple[int, Mapping[str, str]]]) -> str | None:
    """Of the primitives beside, the next one counts, then the last one before."""
    at = bisect_right(beside, order, key=lambda one: one[0])
    following = beside[at][1] if at < len(beside) else None
    at = bisect_left(beside, order, key=lambda one: one[0])
    before = beside[at - 1][1] if at else None
    fits = [tensor for name, tensor in BEFORE.items() if following and following.get(name) == reorder.get("dst")]
    if not fits:
        fits = [tensor for name, tensor in AFTER.items() if before and before.get(name) == reorder.get("src")]
    return fits[0] if len(fits) == 1 else None


def _by_tensor(layouts: str) -> dict[str, str]:
    return dict(part.split(":", 1) for part in layouts.split() if ":" in part)
