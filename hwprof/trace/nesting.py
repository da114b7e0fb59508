"""Slices into begin and end events: nested on one track where they nest, on further tracks where they overlap.

All of it works on *edges* instead of times: times refined so that a slice without length has some, and so that the
order of events at equal times (an end before the next begin, a begin before its own end) is the order of numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

EDGES_PER_NS: Final = 4
END_OF_TIME: Final = np.iinfo(np.int64).max


def edges(begin_ns: Ints, end_ns: Ints, ends_parent: Mask | None = None) -> tuple[Ints, Ints]:
    """The edges of slices: 4 to the nanosecond, and a slice without length ends one after its begin.

    A slice without length that stands where its parent ends would come after it; ``ends_parent`` marks those that
    are to stay inside. A slice that ends before it begins counts as one without length.
    """
    begin = begin_ns * EDGES_PER_NS
    end = np.maximum(end_ns * EDGES_PER_NS, begin + 1)
    if ends_parent is not None:
        begin = np.where(ends_parent, begin - 2, begin)
        end = np.where(ends_parent, begin + 1, end)
    return begin, end


def outer_first(begin: Ints, end: Ints, *ties: npt.NDArray[np.generic]) -> Ints:
    """The order in which slices open: by begin, longer ones first, equal ones by ``ties``."""
    return np.lexsort((*reversed(ties), -end, begin)).astype(np.int64)


@dataclass(frozen=True)
class NestedEvents:
    """Begin and end events in order. ``row`` is the slice's place among those given, ``edge`` when it happens."""

    row: Ints
    is_begin: Mask
    edge: Ints
    depth: Ints
    """Of every slice given, not event: how many are open around it."""
    well_nested: Mask
    """Of every slice given: whether its end closes the slice that was opened last."""


def nested_events(begin: Ints, end: Ints) -> NestedEvents:
    """The events of slices that are given in the order of ``outer_first``.

    Where all are ``well_nested`` each end event closes the innermost open slice; otherwise the order is of no use.
    """
    count = len(begin)
    index = np.arange(count)
    closing = np.lexsort((-index, end))  # inner ones first where several end at once
    closed_before = np.searchsorted(end[closing], begin, "right")
    opened_before = np.searchsorted(begin, end, "left")
    rank = np.empty(count, np.int64)
    rank[closing] = index
    row = np.empty(2 * count, np.int64)
    is_begin = np.zeros(2 * count, np.bool_)
    row[index + closed_before] = index
    is_begin[index + closed_before] = True
    row[rank + opened_before] = index
    depth = index - closed_before
    well_nested = opened_before - (rank + 1) == depth
    return NestedEvents(row, is_begin, np.where(is_begin, begin[row], end[row]), depth, well_nested)


def parents(depth: Ints) -> Ints:
    """The slice around each slice, -1 where there is none among them, from the depths in the order they open."""
    result = np.full(len(depth), -1, np.int64)
    outer = np.flatnonzero(depth == 0)
    for level in range(1, int(depth.max(initial=0)) + 1):
        inner = np.flatnonzero(depth == level)
        result[inner] = np.concatenate([[-1], outer])[np.searchsorted(outer, inner)]
        outer = inner
    return result


def innermost(begin: Ints, end: Ints, at: Ints) -> Ints:
    """Which of the well-nested slices (in ``outer_first`` order) is the innermost one open at each edge; -1: none."""
    events = nested_events(begin, end)
    around = parents(events.depth)
    open_after = np.concatenate([[-1], np.where(events.is_begin, events.row, around[events.row])])
    return open_after[np.searchsorted(events.edge, at, "right")]


class Lane:
    """One track: takes slices for as long as they nest, and remembers those still open."""

    def __init__(self) -> None:
        self.open_begin: Ints = np.empty(0, np.int64)
        self.open_end: Ints = np.empty(0, np.int64)

    def admit(self, begin: Ints, end: Ints) -> Mask:
        """Which of the slices (in ``outer_first`` order, after all earlier ones) nest here; the rest overlap."""
        count = len(self.open_begin)
        begin, end = np.concatenate([self.open_begin, begin]), np.concatenate([self.open_end, end])
        admitted = np.ones(len(begin), np.bool_)
        well_nested = nested_events(begin, end).well_nested
        if not well_nested.all():
            # Slices that touch no slice before them start a cluster; only clusters with an overlap are walked.
            latest = np.maximum.accumulate(end)
            cluster = np.cumsum(np.concatenate([[False], begin[1:] >= latest[:-1]]))
            for bad in np.unique(cluster[~well_nested]):
                first, last = np.searchsorted(cluster, [bad, bad + 1])
                admitted[first:last] = _walk(begin[first:last].tolist(), end[first:last].tolist())
        return admitted[count:]

    def events(self, begin: Ints, end: Ints, until: int) -> NestedEvents:
        """The events before edge ``until`` of slices that were admitted. A ``row`` below zero is a slice of an earlier
        call, whose begin was handed out then; ``depth`` counts these as well. What ends later comes later."""
        count = len(self.open_begin)
        begin, end = np.concatenate([self.open_begin, begin]), np.concatenate([self.open_end, end])
        events = nested_events(begin, end)
        now = (events.edge < until) & ~(events.is_begin & (events.row < count))
        still_open = end >= until
        self.open_begin, self.open_end = begin[still_open], end[still_open]
        return NestedEvents(
            events.row[now] - count, events.is_begin[now], events.edge[now], events.depth[count:], events.well_nested
        )


def _walk(begin: list[int], end: list[int]) -> list[bool]:
    """Which slices nest, taking each in turn if it fits between those taken before."""
    stack: list[int] = []
    taken = []
    for opens, closes in zip(begin, end, strict=True):
        while stack and stack[-1] <= opens:
            stack.pop()
        fits = not stack or closes <= stack[-1]
        if fits:
            stack.append(closes)
        taken.append(fits)
    return taken
