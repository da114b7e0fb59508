"""Threads whose allocations nobody sees: torch's profiler records the thread that began it, and those that torch hands
work to. What a thread of the model's own allocates (Python's, a pool of the user's) is in no record.

Where such a thread was at work, a layer's memory is not what was recorded of it, and no figure.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import polars as pl

from hwprof.analysis.attribution import whole_spans
from hwprof.analysis.lifetimes import FAR
from hwprof.run.process_events import BEGUN_THREADS_CPU_TIME

INTERPRETER: Final = "GIL"
"""What only threads wait for that run Python."""

SCHEMA: Final = pl.Schema({"begin_ns": pl.Int64(), "end_ns": pl.Int64()})
"""Times in which one was there."""


def watched_threads(spans: pl.DataFrame, allocations: pl.DataFrame, calling_tid: int | None) -> frozenset[int]:
    """Those of which torch's profiler recorded anything, and the one that calls the model."""
    recorded = pl.concat([spans.filter(kind="op")["tid"], allocations["tid"]]).unique().to_list()
    return frozenset(recorded) | ({calling_tid} if calling_tid is not None else frozenset())


def computing(team: Collection[int], switches: pl.DataFrame, frames: pl.DataFrame) -> frozenset[int]:
    """Those of a team that run no Python: they wait for no interpreter, and no look found a function of it on them. A
    thread of Python's that calls an operator waits for a team, too: its own."""
    python = {*switches.filter(pl.col("reason") == INTERPRETER)["tid"], *frames["tid"]}
    return frozenset(team) - python


def of_samples(
    samples: pl.DataFrame, lifetimes: pl.DataFrame, watched: Collection[int], team: Collection[int]
) -> pl.DataFrame:
    """When others were met at work that had been there before; the threads of the OpenMP team compute for the one that
    is watched."""
    new = lifetimes.filter(pl.col("born_ns").is_not_null())["tid"].to_list()
    others = samples.filter(~_one_of([*watched, *team, *new]))
    return others.select(begin_ns="time_ns", end_ns=pl.col("time_ns") + 1).cast(SCHEMA)


def of_calls(spans: pl.DataFrame, watched: Collection[int]) -> pl.DataFrame:
    """When they called a module."""
    return spans.filter(~_one_of(watched), kind="layer").select(SCHEMA.names()).cast(SCHEMA)


def of_begun(
    spans: pl.DataFrame, lifetimes: pl.DataFrame, counts: pl.DataFrame, watched: Collection[int], team: Collection[int]
) -> pl.DataFrame:
    """When threads were there that began in the inference.

    ``counts`` tell in which spans threads of Python's were there that began in an iteration, until they had done their
    work; ``lifetimes`` from when on any thread was there, until the kernel had taken it down, which may be much later.
    Without lifetimes it is all of these spans. A thread of a team that no thread of Python's began only computes.
    """
    begun = counts.filter((pl.col("event") == BEGUN_THREADS_CPU_TIME) & (pl.col("value") > 0)).select("span").unique()
    found = spans.join(begun, on="span", how="semi")
    innermost = found.filter(~pl.col("span").is_in(found["parent"].drop_nulls().implode()))
    if lifetimes.is_empty():
        return innermost.select(SCHEMA.names()).cast(SCHEMA)
    wholes = whole_spans(spans)[0].select("iteration", whole_ns="begin_ns", until_ns="end_ns").sort("whole_ns")
    wholes = wholes.with_columns(next_ns=pl.col("until_ns").shift(-1).fill_null(FAR))
    new = (
        lifetimes.filter(pl.col("born_ns").is_not_null() & ~_one_of(watched))
        .select("tid", "born_ns", gone_ns=pl.col("ended_ns").fill_null(FAR))
        .sort("born_ns")
        .join_asof(wholes, left_on="born_ns", right_on="whole_ns", strategy="backward")
        .filter(pl.col("born_ns") < pl.col("until_ns"))  # else it may be a thread of whoever measures
    )
    worked = (
        new.join(innermost.select("iteration", "begin_ns", "end_ns"), on="iteration")
        .filter((pl.col("begin_ns") < pl.col("gone_ns")) & (pl.col("end_ns") > pl.col("born_ns")))
        .group_by("tid", "born_ns")
        .agg(worked_ns=pl.col("end_ns").max())
    )
    stays = pl.col("gone_ns") >= pl.col("next_ns")
    until = pl.when(stays).then("gone_ns").otherwise(pl.min_horizontal("gone_ns", "worked_ns"))
    told = new.join(worked, on=["tid", "born_ns"], how="left")
    computes = _one_of(team) & (pl.col("worked_ns").is_null() | stays)
    return told.filter(~computes).select(begin_ns="born_ns", end_ns=until).cast(SCHEMA)


def _one_of(tids: Collection[int]) -> pl.Expr:
    return pl.col("tid").is_in(pl.Series(list(tids), dtype=pl.Int32).implode())


def merged(*times: pl.DataFrame) -> pl.DataFrame:
    """All of them, as times that do not overlap, in order."""
    ordered = pl.concat([one.cast(SCHEMA) for one in times]).filter(pl.col("end_ns") > pl.col("begin_ns"))
    ordered = ordered.sort("begin_ns", "end_ns")
    apart = (pl.col("begin_ns") > pl.col("end_ns").cum_max().shift(1)).fill_null(value=True)
    groups = ordered.group_by(group=apart.cum_sum(), maintain_order=True)
    return groups.agg(pl.col("begin_ns").min(), pl.col("end_ns").max()).select(SCHEMA.names())


def met(spans: pl.DataFrame, times: pl.DataFrame) -> pl.Series:
    """Of each span (``begin_ns``, ``end_ns``) whether any of the times, as ``merged`` makes them, is partly in it."""
    first_end = times["end_ns"].search_sorted(spans["begin_ns"], side="right")
    first_behind = times["begin_ns"].search_sorted(spans["end_ns"], side="left")
    return first_behind > first_end
