"""The pipeline's stages: calls, times, shares and counters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from hwprof.analysis import metrics, statistics, summary, uncounted
from hwprof.analysis.attribution import COUNTS_SCHEMA, owned_counts
from hwprof.analysis.iterations import Iterations, countable
from hwprof.analysis.layers import Figures
from hwprof.analysis.owners import UNATTRIBUTED
from hwprof.run.manifest import MetricDefinition, PassRecord


def stage_table(
    spans: pl.DataFrame,
    counts: pl.DataFrame,
    record: PassRecord,
    iterations: Iterations,
    definitions: Sequence[MetricDefinition],
    threads: int | None,
    further: pl.DataFrame | None = None,
    uneven: Sequence[str] = (),
    uncounted_callers: pl.DataFrame | None = None,
) -> Figures:
    """One row a stage in order of its first begin, then ``UNATTRIBUTED``: the time of iterations outside of any stage.

    Rows hold ``inside`` (the enclosing stage's name, else null), ``calls``, ``total_ns``, ``call_{mean,std,…}_ns`` over
    single calls of the timed iterations, and ``share`` of the iterations' time; nested stages are parts of their
    enclosing one: the shares of those with ``inside`` null add up to 1. ``uneven``: as in ``layers.figures``;
    ``uncounted_callers``: stages that lack the counts of threads that called layers, in ``uncounted.SCHEMA``.
    """
    kept = spans.join(iterations.frame, on="iteration", how="inner")
    stages = kept.filter(pl.col("kind") == "stage")
    names = stages.select(parent="span", inside="path")
    stages = stages.join(names, on="parent", how="left").with_columns(time_ns=pl.col("end_ns") - pl.col("begin_ns"))
    timed = stages.filter(pl.col("iteration").is_in(list(iterations.timed)))
    whole = _whole_ns(kept, timed, iterations)
    rows = (
        timed.group_by(owner="path")
        .agg(
            pl.col("inside").first(),
            pl.col("begin_ns").min(),
            pl.len().cast(pl.Int64).alias("calls"),
            pl.col("iteration").n_unique().alias("iterations"),
            pl.col("time_ns").sum().alias("total_ns"),
            *statistics.summary("time_ns", "call", "_ns"),
        )
        .sort("begin_ns", "total_ns", descending=[False, True])
        .drop("begin_ns")
    )
    top = rows.filter(pl.col("inside").is_null())["total_ns"].sum()
    rest = pl.DataFrame({"owner": [UNATTRIBUTED], "total_ns": [whole - top]}, schema_overrides={"total_ns": pl.Int64})
    share = pl.col("total_ns") / pl.lit(whole or None, dtype=pl.Float64)
    rows = pl.concat([rows, rest], how="diagonal_relaxed").with_columns(share=share)
    counted, lacking = pl.DataFrame(schema=COUNTS_SCHEMA), uncounted.nobodys()
    threadless = uncounted_callers if uncounted_callers is not None else uncounted.nobodys()
    if stages.height:
        all_counts = owned_counts(_owners(stages), counts, countable(record, iterations))
        counted, lacking = uncounted.hide(uncounted.without(all_counts, threadless))
    static = rows.select(
        "owner",
        pl.lit(None, dtype=pl.Float64).alias("macs"),
        pl.lit(None, dtype=pl.Float64).alias("bytes"),
        pl.lit(threads, dtype=pl.Float64).alias("threads"),
    )
    if further is not None:
        static = static.join(further, on="owner", how="left", maintain_order="left")
    found = _figures(rows, static, stages, counted, iterations, definitions, uneven)
    return replace(found, uncounted=uncounted.by_owner(lacking), uncounted_callers=uncounted.by_owner(threadless))


def _owners(stages: pl.DataFrame) -> pl.DataFrame:
    return stages.filter("layers_counted").select("span", owner="path", caller="tid")


def _whole_ns(kept: pl.DataFrame, timed: pl.DataFrame, iterations: Iterations) -> int:
    """The timed iterations' own time; the top stages' where iterations have no span."""
    whole = kept.filter((pl.col("kind") == "iteration") & pl.col("iteration").is_in(list(iterations.timed)))
    if whole.height:
        return int((whole["end_ns"] - whole["begin_ns"]).sum())
    return int(timed.filter(pl.col("inside").is_null())["time_ns"].sum())


def _figures(
    rows: pl.DataFrame,
    static: pl.DataFrame,
    stages: pl.DataFrame,
    counted: pl.DataFrame,
    iterations: Iterations,
    definitions: Sequence[MetricDefinition],
    uneven: Sequence[str],
) -> Figures:
    per_iteration = stages.group_by("iteration", "layers_counted", owner="path").agg(
        calls=pl.len().cast(pl.Int64), time_ns=pl.col("time_ns").sum()
    )
    operands = summary.operands(
        summary.times(per_iteration, iterations.timed), per_iteration, counted, static, iterations.counted, uneven
    )
    evaluated = metrics.evaluate(operands, metrics.with_threads(definitions))
    return Figures(rows, summary.counts(counted), evaluated.frame, operands.available, evaluated.across_iterations)
