"""Work that is in no count: where code that a counting pass does not follow (other threads, handlers of signals) took
much of a layer's CPU time, or the thread that called it was not counted yet, what was counted there is not the layer's,
and no figure."""

from __future__ import annotations

from typing import Final

import polars as pl

from hwprof.analysis.owners import WHOLE
from hwprof.run.process_events import (
    BEGUN_THREADS_CPU_TIME,
    COVERAGE_EVENTS,
    UNCOUNTED_CPU_TIME,
    WHOLE_PROCESS_TID,
)

TASK_CLOCK: Final = "task-clock"

SHARE: Final = 0.02
"""Of an owner's CPU time: counts that lack less are figures."""

LEAST_NS: Final = 20_000
"""Less is what clocks that are read one after the other disagree by, and what a thread needs to look at a queue."""

SCHEMA: Final = pl.Schema({"owner": pl.String, "iteration": pl.Int32, "uncounted_ns": pl.Int64})

_SCALED: Final = ("scaled", "scaled_main", "scaled_workers")
_IS_MUCH: Final = (pl.col("uncounted_ns") >= LEAST_NS) & (pl.col("uncounted_ns") > SHARE * pl.col("both_ns"))


def nobodys() -> pl.DataFrame:
    """Of counts that lack nothing."""
    return pl.DataFrame(schema=SCHEMA)


def hide(counts: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Attributed counts without the events that tell of uncounted work; where that is much the scaled values are null,
    those as counted stay. And whose it is, in ``SCHEMA``.

    What an instrumented pass counted is told with what it did not; of threads that began meanwhile it is what they
    took, which is held against the CPU time that was counted of the others."""
    times = pl.col("event").is_in([*COVERAGE_EVENTS, BEGUN_THREADS_CPU_TIME])
    rest, told = counts.filter(~times), counts.filter(times)
    if told.is_empty():
        return counts, nobodys()
    others = (
        told.select("owner", "iteration")
        .unique()
        .join(rest.filter(event=TASK_CLOCK), on=["owner", "iteration"], how="inner")
    )
    sums = (
        pl.concat([told, others.select(told.columns)])
        .group_by("owner", "iteration")
        .agg(
            uncounted_ns=pl.col("value")
            .filter(pl.col("event").is_in([UNCOUNTED_CPU_TIME, BEGUN_THREADS_CPU_TIME]))
            .sum(),
            both_ns=pl.col("value").sum(),
        )
    )
    lacking = sums.filter(_IS_MUCH).select(SCHEMA.names()).cast(SCHEMA).sort("owner", "iteration")
    return without(rest, lacking), lacking


def of_callers(spans: pl.DataFrame, counts: pl.DataFrame) -> pl.DataFrame:
    """Whose calls were made by a thread of which nothing was counted, though others were (one that was new to the
    counters), for much of its time; in ``SCHEMA``, where it is that time.

    ``spans``: of modules and of the whole, with ``owner``, ``own_ns`` and ``time_ns``.
    """
    by_thread = counts.filter(pl.col("tid") != WHOLE_PROCESS_TID).select("span", "tid").unique()
    missing = spans.join(by_thread.select("span").unique(), on="span", how="semi").join(
        by_thread, on=["span", "tid"], how="anti"
    )
    own = missing.filter(pl.col("owner") != WHOLE)
    of_whole = own.group_by("iteration").agg(pl.lit(WHOLE).alias("owner"), uncounted_ns=pl.col("own_ns").sum())
    found = own.group_by("owner", "iteration").agg(uncounted_ns=pl.col("time_ns").sum())
    both_ns = spans.group_by("owner", "iteration").agg(both_ns=pl.col("time_ns").sum())
    sums = pl.concat([found, of_whole.select(found.columns)]).join(both_ns, on=["owner", "iteration"])
    return sums.filter(_IS_MUCH).select(SCHEMA.names()).cast(SCHEMA).sort("owner", "iteration")


def without(counts: pl.DataFrame, lacking: pl.DataFrame) -> pl.DataFrame:
    """Attributed counts whose scaled values are null where they lack much."""
    if lacking.is_empty():
        return counts
    marked = counts.join(lacking, on=["owner", "iteration"], how="left", maintain_order="left")
    known = pl.col("uncounted_ns").is_null()
    return marked.with_columns(pl.when(known).then(name).alias(name) for name in _SCALED).drop("uncounted_ns")


def regroup(lacking: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """By another owner, as ``summary.regroup``."""
    mapped = lacking.join(groups.select("owner", "group"), on="owner", how="inner")
    return mapped.group_by("iteration", owner="group").agg(pl.col("uncounted_ns").sum()).select(SCHEMA.names())


def by_owner(lacking: pl.DataFrame) -> dict[str, float]:
    """The median over those iterations in which it is much."""
    found = lacking.group_by("owner").agg(pl.col("uncounted_ns").median()).sort("owner")
    return dict(found.iter_rows())
