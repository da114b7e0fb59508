"""Layers that run at the same time, on threads that the model has for them: what ran on each of these threads.

Of all layers that are open at a time one owns it (``timeline``), and what the threads do that work for all. What a
thread does that has a layer open itself is that layer's, whichever began last elsewhere. So is the code of modules
around layers on the thread that runs it, but the time of one that waits for the threads that it has begun: where it is
known when it waits (``beside``), what it does beside them is its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hwprof.analysis.owners import UNATTRIBUTED, WHOLE, is_leaf
from hwprof.analysis.timeline import NONE, Timeline

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class OwnCalls:
    """The calls of modules on one thread: ``spans``, and the time that each of them owns there."""

    spans: pl.DataFrame
    timeline: Timeline

    @classmethod
    def of(cls, spans: pl.DataFrame) -> OwnCalls:
        """``spans`` as ``Timeline.of`` takes them."""
        return cls(spans, Timeline.of(spans))


def are_own(waiting: Collection[int]) -> pl.Expr:
    """Which rows (``path``, ``tid``) count as a thread's own: those of leaf layers, and but for threads that may be
    ``waiting`` for others those of the modules around them."""
    module = ~pl.col("path").is_in([UNATTRIBUTED, WHOLE])
    waits = pl.col("tid").is_in(pl.Series(list(waiting), dtype=pl.Int32).implode())
    return module & (is_leaf(pl.col("path")) | ~waits)


def own_calls(owners: pl.DataFrame, waiting: Collection[int]) -> Mapping[int, OwnCalls]:
    """By thread, where calls on several threads overlap; empty where none do: then whatever owns a time is what its
    caller does (``Timeline.of`` all ``owners``, as ``samples.inference_spans`` makes them).
    ``waiting``: as ``are_own``."""
    calls = owners.filter(are_own(waiting) & (pl.col("end_ns") > pl.col("begin_ns")))
    if calls["tid"].n_unique() < 2:
        return {}
    each = {int(tid): OwnCalls.of(spans) for (tid,), spans in calls.partition_by("tid", as_dict=True).items()}
    alone_ns = sum(int(own.timeline.durations(own.spans.height).sum()) for own in each.values())
    together_ns = int(Timeline.of(calls).durations(calls.height).sum())
    return each if alone_ns > together_ns else {}


def beside(
    owners: pl.DataFrame, timeline: Timeline, own: Mapping[int, OwnCalls], waits: pl.DataFrame
) -> Mapping[int, OwnCalls]:
    """``own`` calls without the time that modules around layers wait (``waits``: ``tid``, ``begin_ns``, ``end_ns``)
    while the ``timeline`` of all ``owners`` has another thread's."""
    callers = owners["tid"].to_numpy()
    found = dict(own)
    for tid, calls in own.items():
        asleep = waits.filter(pl.col("tid") == tid).sort("begin_ns")
        _, piece, begins, ends = timeline.pieces(asleep["begin_ns"].to_numpy(), asleep["end_ns"].to_numpy())
        elsewhere = callers[timeline.owner[piece]] != tid
        _, piece, begins, ends = calls.timeline.pieces(begins[elsewhere], ends[elsewhere])
        around = ~calls.spans.select(is_leaf(pl.col("path"))).to_series().to_numpy()[calls.timeline.owner[piece]]
        found[tid] = OwnCalls(calls.spans, calls.timeline.without(begins[around], ends[around]))
    return found


def calling_threads(owners: pl.DataFrame) -> list[int]:
    """Those that call the model: of modules on them nobody knows when they wait for threads that they have begun."""
    return owners.filter(pl.col("path").is_in([UNATTRIBUTED, WHOLE]))["tid"].unique().to_list()


def layers_at(calls: Mapping[int, OwnCalls], tids: pl.Series, times_ns: Numbers) -> pl.Series | None:
    """Of threads at times (which ascend), the ``path`` of the innermost of its ``calls`` that the thread has open, null
    where it has none; None where ``calls`` are empty."""
    if not calls:
        return None
    placed = pl.DataFrame({"tid": tids, "time_ns": times_ns}).with_row_index("row")
    found = []
    for (tid,), rows in placed.filter(pl.col("tid").is_in(list(calls))).partition_by("tid", as_dict=True).items():
        own = calls[int(tid)]
        span = own.timeline.at(rows["time_ns"].to_numpy())
        inside = span != NONE
        found.append(pl.DataFrame({"row": rows["row"].filter(inside), "path": own.spans["path"].gather(span[inside])}))
    known = pl.concat([pl.DataFrame(schema={"row": pl.UInt32, "path": pl.String}), *found])
    return placed.join(known, on="row", how="left", maintain_order="left")["path"]
