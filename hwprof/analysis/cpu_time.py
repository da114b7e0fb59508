"""CPU time accounted for: does what was counted by thread and layer add up to what the kernel says the process used?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from hwprof.analysis.attribution import Attribution, owned_counts
from hwprof.analysis.owners import INFERENCE, is_leaf, is_rest
from hwprof.run.schema import PROCESS_CPU_TIME, WHOLE_PROCESS_TID

TASK_CLOCK: Final = "task-clock"

UNRECORDED_TICK_NS: Final = 4_000_000
"""Taken for the tick of a machine that did not tell it, and of every run from before it was kept: most kernels'
(CONFIG_HZ=250)."""

FEW_TICKS: Final = 5
"""Iterations with less CPU time than this say more of when the clock ticked than of what was counted."""


@dataclass(frozen=True, kw_only=True)
class CpuTime:
    """CPU time by owner, as shares of the process's CPU time by the kernel's account; sums over iterations.

    The kernel's account of a thread that runs on another processor lags by up to a tick at either end of an iteration,
    which sums even out and medians would not.

    ``accounted_for`` = layers + rest of the inference + rest of the iteration: 1 where every thread was
    counted throughout.
    """

    iterations: int
    process_cpu_time_ns: float
    layers: float
    rest_of_inference: float
    rest_of_iteration: float
    accounted_for: float
    tick_ns: int  # of the kernel's clock: its account of a thread on another processor is as old as that
    resolved: bool  # iterations are long enough for the kernel's account


def cpu_time(
    spans: pl.DataFrame, counts: pl.DataFrame, attribution: Attribution, recorded_tick_ns: int | None
) -> CpuTime | None:
    """Over the iterations that counted layers; None where the process's or the threads' CPU time was not counted.

    ``recorded_tick_ns``: the tick of the machine that was measured on, where it told.
    """
    tick_ns = recorded_tick_ns or UNRECORDED_TICK_NS
    counted = spans.join(
        attribution.iterations.frame.filter("layers_counted").select("iteration"), on="iteration", how="semi"
    )
    iterations = counted.filter(pl.col("kind") == "iteration")
    process = (
        counts.filter((pl.col("event") == PROCESS_CPU_TIME) & (pl.col("tid") == WHOLE_PROCESS_TID))
        .join(iterations, on="span", how="semi")
        .group_by("iteration")
        .agg(pl.col("value").sum().alias("process"))
    )
    layers = _task_clock(attribution, layers=True).rename({"scaled": "layers"})
    rest = _task_clock(attribution, layers=False).rename({"scaled": "rest"})
    everything = _threads(counted, counts).rename({"scaled": "everything"})
    table = process.filter(pl.col("process") > 0).join(everything, on="iteration", how="inner").drop_nulls("everything")
    for part in (layers, rest):  # a model may have no layer that is called, or nothing beside its layers
        table = table.join(part, on="iteration", how="left")
    if not table.height:
        return None
    whole = float(table["process"].sum())
    in_layers, in_threads = float(table["layers"].sum()), float(table["everything"].sum())
    in_rest = float(table["rest"].sum()) if attribution.whole == INFERENCE else 0.0
    return CpuTime(
        iterations=table.height,
        process_cpu_time_ns=whole / table.height,
        layers=in_layers / whole,
        rest_of_inference=in_rest / whole,
        rest_of_iteration=(in_threads - in_layers - in_rest) / whole,
        accounted_for=in_threads / whole,
        tick_ns=tick_ns,
        resolved=whole / table.height >= FEW_TICKS * tick_ns,
    )


def _task_clock(attribution: Attribution, *, layers: bool) -> pl.DataFrame:
    """Iteration and the CPU time of all leaf layers, or of what is between them."""
    rows = attribution.counts.filter(pl.col("event") == TASK_CLOCK)
    owner = pl.col("owner")
    return rows.filter(is_leaf(owner) if layers else is_rest(owner)).group_by("iteration").agg(pl.col("scaled").sum())


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
