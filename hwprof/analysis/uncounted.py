"""Work that is in no count: where code that a counting pass does not follow (other threads, handlers of signals) took
much of a layer's CPU time, what it counted there is not the layer's, and no figure."""

from __future__ import annotations

from typing import Final

import polars as pl

from hwprof.run.process_events import COVERAGE_EVENTS, UNCOUNTED_CPU_TIME

SHARE: Final = 0.02
"""Of an owner's CPU time: counts that lack less are figures."""

LEAST_NS: Final = 20_000
"""Less is what clocks that are read one after the other disagree by, and what a thread needs to look at a queue."""

SCHEMA: Final = pl.Schema({"owner": pl.String, "iteration": pl.Int32, "uncounted_ns": pl.Int64})

_SCALED: Final = ("scaled", "scaled_main", "scaled_workers")


def nobodys() -> pl.DataFrame:
    """Of counts that lack nothing."""
    return pl.DataFrame(schema=SCHEMA)


def hide(counts: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Attributed counts without the two events that tell of uncounted work; where that is much the scaled values are
    null, those as counted stay. And whose it is, in ``SCHEMA``."""
    times = pl.col("event").is_in(COVERAGE_EVENTS)
    rest, told = counts.filter(~times), counts.filter(times)
    if told.is_empty():
        return counts, nobodys()
    sums = told.group_by("owner", "iteration").agg(
        uncounted_ns=pl.col("value").filter(event=UNCOUNTED_CPU_TIME).sum(),
        both_ns=pl.col("value").sum(),
    )
    much = (pl.col("uncounted_ns") >= LEAST_NS) & (pl.col("uncounted_ns") > SHARE * pl.col("both_ns"))
    lacking = sums.filter(much).select(SCHEMA.names()).cast(SCHEMA).sort("owner", "iteration")
    marked = rest.join(lacking, on=["owner", "iteration"], how="left", maintain_order="left")
    known = pl.col("uncounted_ns").is_null()
    hidden = marked.with_columns(pl.when(known).then(name).alias(name) for name in _SCALED)
    return hidden.drop("uncounted_ns"), lacking


def regroup(lacking: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """By another owner, as ``summary.regroup``."""
    mapped = lacking.join(groups.select("owner", "group"), on="owner", how="inner")
    return mapped.group_by("iteration", owner="group").agg(pl.col("uncounted_ns").sum()).select(SCHEMA.names())


def by_owner(lacking: pl.DataFrame) -> dict[str, float]:
    """The median over those iterations in which it is much."""
    found = lacking.group_by("owner").agg(pl.col("uncounted_ns").median()).sort("owner")
    return dict(found.iter_rows())
