"""CPU time accounted for: does what was counted by thread and layer add up to what the kernel says the process used?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import polars as pl

from hwprof.analysis.attribution import Attribution, owned_counts
from hwprof.analysis.iterations import select
from hwprof.analysis.owners import INFERENCE, UNATTRIBUTED, WHOLE
from hwprof.analysis.uncounted import TASK_CLOCK as TASK_CLOCK
from hwprof.run.manifest import IterationRecord
from hwprof.run.process_events import NEW_THREADS_CPU_TIME, PROCESS_CPU_ERROR, PROCESS_CPU_TIME, WHOLE_PROCESS_TID

CONTEXT_SWITCHES: Final = "context-switches"

UNRECORDED_TICK_NS: Final = 4_000_000
"""Taken for the tick of a machine that did not tell it, and of every run from before it was kept: most kernels'
(CONFIG_HZ=250)."""

FEW_TICKS: Final = 5
"""Of a run of before, whose account of the process lagged by up to a tick: iterations with less CPU time than this say
more of when the clock ticked than of what was counted."""

COARSE: Final = 0.1
"""From this error of the process's CPU time on, iterations are too short: counters were being read for much of it."""

WORTH_NAMING: Final = 0.02
"""Of the CPU time, beyond the error: less that was not counted is not told."""

SWITCH_NS: Final = 10_000
"""At most so long counters stand still at a context switch, for which the kernel charges the thread: 4 to 6 µs were
measured in a virtual machine with seven events."""

NEW_THREADS: Final = "new threads"
SWITCHES: Final = "context switches"
UNKNOWN: Final = "unknown"
"""Why CPU time was not counted."""

NOT_YET: Final = "layers were called by threads that were not counted yet"
UNSEEN: Final = "code that is not counted ran in layers"
WHOSE: Final = "layers ran in threads of the model's own, and what is beside them is anybody's"
NOT_ALWAYS: Final = "a counter did not run throughout"
"""Why a share is not known."""


class Uncounted(NamedTuple):
    """Which part of the process's CPU time was counted of no thread, and most of it why."""

    share: float
    cause: str


@dataclass(frozen=True, kw_only=True)
class CpuTime:
    """CPU time by owner, as shares of the process's CPU time by the kernel's account; sums over iterations.

    ``accounted_for`` = layers + rest of the inference + rest of the iteration: 1, within its error, where every thread
    was counted throughout.
    """

    iterations: int
    process_cpu_time_ns: float
    layers: float | None  # leaf layers, and the own code of the modules around them
    rest_of_inference: float | None  # ``unattributed``
    rest_of_iteration: float | None
    unknown: str | None  # why of the three one is not known
    accounted_for: float
    error: float | None  # of ``accounted_for``, at least what it is above 1 (one of the kernel's clocks may leave
    # out time that the hypervisor took, the other not); None: not known, in runs of before
    tick_ns: int  # of the kernel's clock: in runs of before its account of a thread elsewhere is as old as that
    resolved: bool  # iterations are long enough for the kernel's account


def cpu_time(
    spans: pl.DataFrame, counts: pl.DataFrame, attribution: Attribution, recorded_tick_ns: int | None
) -> CpuTime | None:
    """Over the iterations that counted layers; None where the process's or the threads' CPU time was not counted.

    ``recorded_tick_ns``: the tick of the machine that was measured on, where it told.
    """
    counted = spans.join(
        attribution.iterations.frame.filter("layers_counted").select("iteration"), on="iteration", how="semi"
    )
    rest, whole_of_layers = (pl.col("owner") == owner for owner in (UNATTRIBUTED, WHOLE))
    parts = {"layers": ~(rest | whole_of_layers), "rest": rest, "inference": whole_of_layers}
    table = _both_sides(counted, counts)
    for name, owners in parts.items():  # a model may have no layer that is called, or nothing beside its layers
        table = table.join(_task_clock(attribution, owners, name), on="iteration", how="left")
    table = table.with_columns(pl.col("has_layers", "has_rest").fill_null(False))
    if not table.height:
        return None
    # no row: no layer was called; a row that is null: one of them was not counted
    table = table.with_columns(pl.when("has_layers").then("layers").otherwise(0.0))
    # of layers that overlap, which are counted twice, nobody knows the rest: it is negative then
    overlapping = pl.col("inference") - pl.col("layers")
    rest = pl.coalesce("rest", pl.when(overlapping < 0).then(overlapping))
    table = table.with_columns(rest if attribution.whole == INFERENCE else pl.lit(0.0).alias("rest"))
    outside = pl.col("everything") - pl.col("layers") - pl.col("rest")
    if attribution.whole == INFERENCE:
        outside = pl.coalesce(outside, pl.col("everything") - pl.col("inference"))
    table = table.with_columns(outside=outside)
    whole, in_threads = float(table["process"].sum()), float(table["everything"].sum())
    shares = [_share(table[name], whole) for name in ("layers", "rest", "outside")]
    tick_ns = recorded_tick_ns or UNRECORDED_TICK_NS
    known_to = _known_to(table)
    accounted_for = in_threads / whole
    error = accounted_for * known_to / (1 - known_to) if known_to is not None and known_to < 1 else None
    return CpuTime(
        iterations=table.height,
        process_cpu_time_ns=whole / table.height,
        layers=shares[0],
        rest_of_inference=shares[1],
        rest_of_iteration=shares[2],
        unknown=_why_unknown(attribution, table) if None in shares else None,
        accounted_for=accounted_for,
        error=max(error, accounted_for - 1) if error is not None else None,
        tick_ns=tick_ns,
        resolved=known_to <= COARSE if known_to is not None else whole / table.height >= FEW_TICKS * tick_ns,
    )


def _share(times: pl.Series, whole: float) -> float | None:
    """None where one of the times is not known."""
    return None if times.has_nulls() else float(times.sum()) / whole


def _why_unknown(attribution: Attribution, table: pl.DataFrame) -> str:
    if attribution.uncounted_callers.join(table, on="iteration", how="semi").height:
        return NOT_YET
    if attribution.uncounted.join(table, on="iteration", how="semi").height:
        return UNSEEN
    return WHOSE if table.filter(pl.col("rest").is_null() & ~pl.col("has_rest")).height else NOT_ALWAYS


def uncounted(spans: pl.DataFrame, counts: pl.DataFrame, records: Sequence[IterationRecord]) -> Uncounted | None:
    """Of the process's CPU time, in the iterations that ``cpu_time`` is of; None where all of it may have been counted,
    and where that is not known. All three are one pass's."""
    chosen = select(records).counted
    spans = spans.filter(pl.col("iteration").is_in(list(chosen)))
    table = _both_sides(spans, counts)
    known_to = _known_to(table)
    if known_to is None or known_to > COARSE:
        return None
    process_ns = float(table["process"].sum())
    missed_ns = process_ns - float(table["everything"].sum())
    if missed_ns <= (WORTH_NAMING + known_to) * process_ns:
        return None
    of_iterations = counts.join(spans.filter(pl.col("kind") == "iteration"), on="span", how="semi")
    new_ns, switches = (
        of_iterations.filter(pl.col("event") == event)["value"].sum()
        for event in (NEW_THREADS_CPU_TIME, CONTEXT_SWITCHES)
    )
    cause = NEW_THREADS if new_ns >= missed_ns / 2 else SWITCHES if missed_ns <= SWITCH_NS * switches else UNKNOWN
    return Uncounted(missed_ns / process_ns, cause)


def _known_to(table: pl.DataFrame) -> float | None:
    """The relative error of the process's CPU time over all iterations of ``_both_sides``; None: not known."""
    if not table.height or table["error"].has_nulls():
        return None
    return float(table["error"].sum()) / float(table["process"].sum())


def _both_sides(spans: pl.DataFrame, counts: pl.DataFrame) -> pl.DataFrame:
    """``iteration``, ``process`` and its ``error`` (ns, by the kernel's account), ``everything`` that was counted of
    its threads; the iterations that have both."""
    iterations = spans.filter(pl.col("kind") == "iteration")
    of_process = counts.filter(pl.col("tid") == WHOLE_PROCESS_TID).join(iterations, on="span", how="semi")
    charged, error = (
        of_process.filter(pl.col("event") == event).group_by("iteration").agg(pl.col("value").sum().alias(name))
        for event, name in ((PROCESS_CPU_TIME, "process"), (PROCESS_CPU_ERROR, "error"))
    )
    everything = _threads(spans, counts).rename({"scaled": "everything"})
    return (
        charged.filter(pl.col("process") > 0)
        .join(error, on="iteration", how="left")
        .join(everything, on="iteration", how="inner")
        .drop_nulls("everything")
        .sort("iteration")
    )


def _task_clock(attribution: Attribution, owners: pl.Expr, name: str) -> pl.DataFrame:
    """Iteration, the CPU time of these owners, under that name: as the table of layers has them, and null where that of
    one of them is; and ``has_…``, true: that they have a row."""
    rows = attribution.counts.filter((pl.col("event") == TASK_CLOCK) & owners)
    known = pl.when(pl.col("scaled").null_count() == 0).then(pl.col("scaled").sum())
    return rows.group_by("iteration").agg(known.alias(name), pl.lit(True).alias(f"has_{name}"))


def _threads(spans: pl.DataFrame, counts: pl.DataFrame) -> pl.DataFrame:
    """Iteration and all threads' CPU time in it: of the iteration's own span, else of its outermost stages."""
    stages = spans.filter(pl.col("kind") == "stage")
    outer = stages.join(stages.select(parent="span"), on="parent", how="anti")
    for owners in (spans.filter(pl.col("kind") == "iteration"), outer):
        rows = counts.filter((pl.col("event") == TASK_CLOCK) & (pl.col("tid") != WHOLE_PROCESS_TID))
        found = owned_counts(owners.select("span", owner="kind", caller="tid"), rows, None)
        if found.height:
            return found.select("iteration", "scaled")
    return pl.DataFrame(schema={"iteration": pl.Int32, "scaled": pl.Float64})
