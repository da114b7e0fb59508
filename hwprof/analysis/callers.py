"""Which module called another one on another thread: its span has no parent there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from hwprof.analysis.owners import UNATTRIBUTED
from hwprof.analysis.timeline import NONE, Timeline


def with_callers(modules: pl.DataFrame) -> pl.DataFrame:
    """The spans of modules (with ``leaf``); ``parent`` of one that was called on a thread of its own is the module that
    waited for it: the innermost one on the calling thread, where nothing began or ended there meanwhile, and no other
    such call was open. Else nobody can tell whose work it was, and it stays null."""
    elsewhere = modules.filter(pl.col("parent").is_null()).sort("begin_ns")
    calling = modules.filter(~pl.col("tid").is_in(elsewhere["tid"].unique().implode()))
    if elsewhere.is_empty() or calling.is_empty():
        return modules
    line = Timeline.of(calling)
    begins, ends = elsewhere["begin_ns"].to_numpy(), elsewhere["end_ns"].to_numpy()
    waited = np.searchsorted(line.edges, begins, side="right") == np.searchsorted(line.edges, ends)
    after_others = np.append(True, begins[1:] >= np.maximum.accumulate(ends)[:-1])
    before_others = np.append(ends[:-1] <= begins[1:], True)
    row = line.at(begins)
    known = waited & after_others & before_others & (row != NONE)
    spans, leaf = calling["span"].to_numpy(), calling["leaf"].to_numpy()
    known &= ~leaf[row]
    found = pl.DataFrame({"span": elsewhere["span"].to_numpy()[known], "caller": spans[row[known]]})
    joined = modules.join(found.cast(modules.schema["span"]), on="span", how="left", maintain_order="left")
    return joined.with_columns(parent=pl.coalesce("parent", "caller")).drop("caller")


def mixed(modules: pl.DataFrame, calling: Sequence[int]) -> pl.DataFrame:
    """``owner`` and ``iteration`` of what lies between modules while calls that nobody can tell the caller of run on
    threads of their own: the counters of all threads are read, so what is left of them without the modules' own is
    anybody's. ``modules`` as ``with_callers`` makes them, ``calling``: the threads that call the model."""
    own_threads = modules.filter(pl.col("parent").is_null() & ~pl.col("tid").is_in(list(calling))).sort("begin_ns")
    if own_threads.is_empty():
        return pl.DataFrame(schema={"owner": pl.String, "iteration": modules.schema["iteration"]})
    begins, ends = own_threads["begin_ns"].to_numpy(), np.maximum.accumulate(own_threads["end_ns"].to_numpy())
    inner = modules.filter(~pl.col("leaf"))
    last = np.searchsorted(begins, inner["end_ns"].to_numpy(), side="left")  # those that begin before its end
    meets = (last > 0) & (ends[np.maximum(last - 1, 0)] > inner["begin_ns"].to_numpy())
    rest = own_threads.select(pl.lit(UNATTRIBUTED).alias("owner"), "iteration")
    return pl.concat([inner.filter(pl.Series(meets)).select("owner", "iteration"), rest]).unique()
