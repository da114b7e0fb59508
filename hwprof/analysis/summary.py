"""Repeated figures summed up: the median over iterations with its spread, for any grouping of owners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from hwprof.analysis import statistics, uncore
from hwprof.analysis.metrics import Operands
from hwprof.analysis.owners import is_rest
from hwprof.run.process_events import COUNTED_WINDOW


def regroup(frame: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """Attributed times or counts by another owner: ``groups`` maps owner -> group; owners without one are left out.

    Sums over the owners of a group in each iteration; a scaled value that is not known of one is not known of the sum.
    """
    mapped = frame.join(groups.select("owner", "group"), on="owner", how="inner").with_columns(owner="group")
    if "event" not in frame.columns:
        sums = mapped.group_by("owner", "iteration", "layers_counted").agg(pl.col("calls", "time_ns").sum())
    else:
        amounts = [name for name in frame.columns if name not in ("owner", "iteration", "event", "provenance")]
        sums = mapped.group_by("owner", "iteration", "event").agg(
            pl.col("provenance").first(),
            *(pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum()).alias(name) for name in amounts),
        )
    return sums.select(frame.columns).sort("owner", "iteration")


def times(frame: pl.DataFrame, iterations: tuple[int, ...]) -> pl.DataFrame:
    """Time per iteration by owner, of the iterations that call it; ``calls_per_iteration`` is the mean over all.

    Columns ``owner, calls_per_iteration, iterations, time_{median,mad,mean,std,min,max}_ns``.
    """
    return (
        frame.filter(pl.col("iteration").is_in(list(iterations)))
        .group_by("owner")
        .agg(
            (pl.col("calls").sum() / max(len(iterations), 1)).alias("calls_per_iteration"),
            pl.len().alias("iterations"),
            *statistics.summary("time_ns", "time", "_ns"),
        )
        .sort("owner")
    )


def counts(frame: pl.DataFrame) -> pl.DataFrame:
    """Events per iteration by owner: medians of the scaled values, with the share of time that the counters ran.

    Columns ``owner, event, provenance, iterations, value, mad, main, workers, running_share``. ``value`` is null where
    the counter never ran; ``running_share`` is 1 where nothing was multiplexed.
    """
    if not frame.select(pl.struct("owner", "event").is_duplicated().any()).item():  # one iteration: exact counts, say
        return _of_one(frame).sort("owner", "event")
    enabled = pl.col("enabled_ns").sum()
    return (
        frame.group_by("owner", "event")
        .agg(
            pl.col("provenance").first(),
            pl.len().alias("iterations"),
            pl.col("scaled").median().alias("value"),
            statistics.mad("scaled").alias("mad"),
            pl.col("scaled_main").median().alias("main"),
            pl.col("scaled_workers").median().alias("workers"),
            pl.when(enabled > 0).then(pl.col("running_ns").sum() / enabled).otherwise(1.0).alias("running_share"),
        )
        .sort("owner", "event")
    )


def _of_one(frame: pl.DataFrame) -> pl.DataFrame:
    """What ``counts`` finds of a row each."""
    shares = pl.col("running_ns") / pl.col("enabled_ns")
    return frame.select(
        "owner",
        "event",
        "provenance",
        iterations=pl.lit(1, pl.UInt32),
        value=pl.col("scaled"),
        mad=pl.lit(None, pl.Float64),
        main=pl.col("scaled_main"),
        workers=pl.col("scaled_workers"),
        running_share=pl.when(pl.col("enabled_ns") > 0).then(shares).otherwise(1.0),
    )


def events(counters: pl.DataFrame) -> list[dict[str, Any]]:
    """The events that ``counts`` found, by name: ``name``, ``provenance``, and the lowest ``running_share``."""
    found = counters.group_by(name="event").agg(pl.col("provenance").first(), pl.col("running_share").min())
    return found.sort("name").to_dicts()


def by_event(counters: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """What ``counts`` found, by event in the order of names."""
    parts = counters.partition_by("event", as_dict=True, maintain_order=True)
    return {str(event): rows for (event,), rows in sorted(parts.items())}


def by_owners(counters: pl.DataFrame, owners: Sequence[str]) -> dict[str, pl.DataFrame]:
    """``by_event`` of those that some of the ``owners`` have: a row each in their order, null of the others."""
    order = pl.DataFrame({"owner": owners}, schema={"owner": pl.String})
    placed = {
        event: order.join(rows, on="owner", how="left", maintain_order="left")
        for event, rows in by_event(counters).items()
    }
    return {event: rows for event, rows in placed.items() if rows["provenance"].count()}


def by_name(counts: pl.DataFrame) -> pl.DataFrame:
    """Attributed counts with a column an operand: ``owner, iteration, EVENT, EVENT@main, EVENT@workers, …``."""
    parts = {"scaled": "", "scaled_main": "@main", "scaled_workers": "@workers"}
    return _pivoted(counts, ["owner", "iteration"], parts)


def operands(
    time_summary: pl.DataFrame,
    times: pl.DataFrame,
    counts: pl.DataFrame,
    static: pl.DataFrame,
    counted: tuple[int, ...],
    uneven: Sequence[str] = (),
) -> Operands:
    """What formulas are made of, per iteration, for the owners in ``static`` (which has macs, bytes, threads, …).

    ``time_summary``: as ``times`` makes it of the timed iterations; ``times`` and ``counts``: as attributed;
    ``counted``: the iterations whose times belong to the counts. ``counted-time`` (ns) is the time between the
    readings; where there is no such window, the owner's own in that iteration. ``uneven``: the owners of whom figures
    of different iterations do not belong together; nor does a time, where none of the counts' own is known.
    """
    seconds = times.filter(pl.col("iteration").is_in(list(counted))).select(
        "owner", "iteration", pl.col("time_ns").cast(pl.Float64).alias("counted-time")
    )
    frame = seconds.join(by_name(counts), on=["owner", "iteration"], how="full", coalesce=True)
    if COUNTED_WINDOW in frame.columns:
        # A layer's window reaches back over the gap before it, in which the main thread's time is no layer's. So what
        # is left between layers has CPU time (reading the workers among it), and no wall time to divide it by.
        window = pl.when(~is_rest(pl.col("owner"))).then(pl.coalesce(COUNTED_WINDOW, "counted-time"))
        frame = frame.with_columns(window.alias("counted-time"))
    known = static.join(time_summary.select("owner", time="time_median_ns"), on="owner", how="left")
    known = known.with_columns(pl.all().exclude("owner").cast(pl.Float64))
    even = ~pl.col("owner").is_in(list(uneven))
    alike = {
        "owner",
        "threads",
        *(["time"] if counted else []),
        *(name for name in known.columns if name.startswith(uncore.PREFIX)),
    }
    known = known.with_columns(pl.when(even).then(name).alias(name) for name in known.columns if name not in alike)
    medians = frame.drop("iteration").filter(even)
    if medians["owner"].is_duplicated().any():
        medians = medians.group_by("owner").agg(pl.all().median())
    return Operands(
        known.join(medians, on="owner", how="left", maintain_order="left"),
        known.join(frame, on="owner", how="inner", maintain_order="left"),
        frozenset(known.columns),
    )


def as_operands(counters: pl.DataFrame) -> pl.DataFrame:
    """Counters as ``counts`` sums them up, with a column an operand: ``owner, EVENT, EVENT@main, EVENT@workers, …``."""
    return _pivoted(counters, ["owner"], {"value": "", "main": "@main", "workers": "@workers"})


def _pivoted(counts: pl.DataFrame, index: list[str], parts: Mapping[str, str]) -> pl.DataFrame:
    """A row for each ``index``, and for each event a column with each of ``parts``; their names end as these say."""
    if counts.is_empty():
        return counts.select(index)
    events = counts["event"].unique(maintain_order=True).to_list()
    numbered = counts.select(*index, *parts, event=pl.col("event").cast(pl.Enum(events)))
    wide = numbered.pivot("event", on_columns=events, index=index, values=list(parts), aggregate_function="first")
    names = {f"{part}_{event}": f"{event}{suffix}" for part, suffix in parts.items() for event in events}
    return wide.rename(names)
