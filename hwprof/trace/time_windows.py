"""Time windows of a bounded number of rows each, so that no table is ever completely in memory."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np
import polars as pl

Window = tuple[int, int]
"""From (inclusive) and to (exclusive), in nanoseconds."""

ROWS: Final = 60_000
_BINS: Final = 8192


def windows(frame: pl.LazyFrame, time: str, *, rows: int = ROWS, unsplit: pl.LazyFrame | None = None) -> list[Window]:
    """Windows over the column ``time`` that together hold every row of ``frame``, each about ``rows`` of them.

    No window ends inside of an interval of ``unsplit`` (columns ``begin_ns``, ``end_ns``).
    """
    total, first, last = (
        frame.select(pl.len(), pl.col(time).min().alias("first"), pl.col(time).max().alias("last"))
        .collect(engine="streaming")
        .row(0)
    )
    if not total:
        return []
    if total <= rows:
        return [(first, last + 1)]
    width = (last - first) // _BINS + 1
    histogram = (
        frame.group_by(((pl.col(time) - first) // width).alias("bin"))
        .agg(pl.len().alias("rows"))
        .sort("bin")
        .collect(engine="streaming")
    )
    share = (histogram["rows"].cum_sum() - histogram["rows"]) // rows
    starts = histogram["bin"].filter(share != share.shift(1, fill_value=-1)).to_numpy() * width + first
    cuts = _outside(starts[1:].astype(np.int64), unsplit) if unsplit is not None else starts[1:]
    edges = [first, *(cut for cut in np.unique(cuts).tolist() if cut > first), last + 1]
    return list(pairwise(edges))


def _outside(
    cuts: np.ndarray[tuple[int], np.dtype[np.int64]], unsplit: pl.LazyFrame
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The cuts, each that falls into a run of overlapping intervals moved back to where that run begins."""
    intervals = unsplit.select("begin_ns", "end_ns").sort("begin_ns").collect(engine="streaming")
    if intervals.is_empty():
        return cuts
    begin = intervals["begin_ns"].to_numpy()
    latest = np.maximum.accumulate(intervals["end_ns"].to_numpy())
    run = np.concatenate([[True], begin[1:] >= latest[:-1]])
    run_begin, run_end = begin[run], latest[np.append(run[1:], True)]
    inside = np.searchsorted(run_begin, cuts, "right") - 1
    falls = (inside >= 0) & (cuts < run_end[inside])
    return np.where(falls, run_begin[inside], cuts)
