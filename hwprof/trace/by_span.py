"""Rows of a frame by the span that they belong to, as Python's objects: some at a time, as of millions there is no room
for all of them. Spans are best asked for in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import numpy as np
import polars as pl

ROWS: Final = 10_000
"""That are objects at once: a few megabytes."""

Row = TypeVar("Row")


class BySpan(Generic[Row]):
    """The rows of ``frame``, which has a column ``span``, each as ``make`` makes it of the values of the other ones."""

    def __init__(self, frame: pl.DataFrame, make: Callable[[tuple[Any, ...]], Row]) -> None:
        self._make = make
        rows = frame if frame["span"].is_sorted() else frame.sort("span", maintain_order=True)
        spans, begins = np.unique(rows["span"].to_numpy(), return_index=True)
        self._places = {span: place for place, span in enumerate(spans.tolist())}
        self._edges = [*begins.tolist(), rows.height]
        self._rows = rows.drop("span")
        self._begin = self._end = 0
        self._made: list[Row] = []

    def __contains__(self, span: object) -> bool:
        return span in self._places

    def of(self, span: int) -> list[Row]:
        """Its rows, in their order in the frame; none where it has none."""
        place = self._places.get(span)
        if place is None:
            return []
        begin, end = self._edges[place : place + 2]
        if begin < self._begin or end > self._end:
            self._begin, self._end = begin, min(max(end, begin + ROWS), self._rows.height)
            part = self._rows.slice(begin, self._end - begin)
            self._made = list(map(self._make, part.iter_rows()))
        return self._made[begin - self._begin : end - self._begin]


def none_by_span() -> BySpan[Any]:
    """Of no span."""
    return BySpan(pl.DataFrame(schema={"span": pl.Int64}), lambda _: None)
