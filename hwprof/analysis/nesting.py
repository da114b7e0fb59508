"""Which interval lies around which: spans of one thread as they were open, one within the other."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

NONE = -1


def enclosing(begins: Numbers, ends: Numbers, threads: Numbers) -> Numbers:
    """Of each interval the row of the innermost one that was open when it began, or ``NONE``.

    The rows are sorted by ``threads``, then by begin, of those that begin together the longest first. One that ends
    when another begins is not open any more.
    """
    found = nested(begins, ends, threads)
    return _one_by_one(begins, ends, threads) if found is None else found


def nested(begins: Numbers, ends: Numbers, threads: Numbers) -> Numbers | None:
    """As ``enclosing``, of all at once; None where one outlasts the one around it, so that depths do not tell who is
    around whom, or takes no time."""
    number = np.arange(len(begins))
    depths = np.empty(len(begins), dtype=np.int64)
    for first, until in _runs(threads):
        closed = np.searchsorted(np.sort(ends[first:until]), begins[first:until], side="right")
        depths[first:until] = number[first:until] - first - closed
    if (depths < 0).any() or (ends <= begins).any():
        return None
    around = np.full(len(begins), NONE, dtype=np.int64)
    for depth in range(1, int(depths.max(initial=0)) + 1):
        outer, inner = np.flatnonzero(depths == depth - 1), np.flatnonzero(depths == depth)
        around[inner] = outer[np.searchsorted(outer, inner) - 1]
    inner = np.flatnonzero(around >= 0)
    outlasting = (ends[inner] > ends[around[inner]]) | (threads[inner] != threads[around[inner]])
    return None if outlasting.any() else around


def _runs(threads: Numbers) -> list[tuple[int, int]]:
    """First row and row after the last of each thread."""
    edges = np.flatnonzero(np.diff(threads)) + 1
    places = [0, *edges.tolist(), len(threads)]
    return [(first, until) for first, until in pairwise(places) if until > first]


def _one_by_one(begins: Numbers, ends: Numbers, threads: Numbers) -> Numbers:
    around = np.full(len(begins), NONE, dtype=np.int64)
    opened: list[int] = []
    before: int | None = None
    for row, (begin, thread) in enumerate(zip(begins.tolist(), threads.tolist(), strict=True)):
        if thread != before:
            before = thread
            opened.clear()
        while opened and ends[opened[-1]] <= begin:
            opened.pop()
        if opened:
            around[row] = opened[-1]
        opened.append(row)
    return around
