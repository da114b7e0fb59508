"""Layers that run at the same time, on threads that the model has for them: what ran on each of these threads.

Of all layers that are open at a time one owns it (``timeline``), and what the threads do that work for all. What a
thread does that has a layer open itself is that layer's, whichever began last elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hwprof.analysis.owners import is_leaf
from hwprof.analysis.timeline import NONE, Timeline

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class OwnCalls:
    """The calls of leaf layers on one thread: ``spans``, and the time that each of them owns there."""

    spans: pl.DataFrame
    timeline: Timeline

    @classmethod
    def of(cls, spans: pl.DataFrame) -> OwnCalls:
        """``spans`` as ``Timeline.of`` takes them."""
        return cls(spans, Timeline.of(spans))


def own_calls(owners: pl.DataFrame) -> Mapping[int, OwnCalls]:
    """By thread, where calls of leaf layers on several threads overlap; empty where none do: then whatever owns a time
    (``Timeline.of`` all ``owners``) is what its caller does. ``owners`` as ``samples.inference_spans`` makes them."""
    leaves = owners.filter(is_leaf(pl.col("path")) & (pl.col("end_ns") > pl.col("begin_ns")))
    if leaves["tid"].n_unique() < 2:
        return {}
    each = {int(tid): OwnCalls.of(spans) for (tid,), spans in leaves.partition_by("tid", as_dict=True).items()}
    alone_ns = sum(int(own.timeline.durations(own.spans.height).sum()) for own in each.values())
    together_ns = int(Timeline.of(leaves).durations(leaves.height).sum())
    return each if alone_ns > together_ns else {}


def layers_at(calls: Mapping[int, OwnCalls], tids: pl.Series, times_ns: Numbers) -> pl.Series | None:
    """Of threads at times (which ascend), the path of the leaf layer that the thread has open, null where it has none;
    None where ``calls`` are empty."""
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
