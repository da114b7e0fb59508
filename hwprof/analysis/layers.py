"""The table of leaf layers: what each is, how long it took, what it counted, and the metrics derived from that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from hwprof.analysis import metrics, summary
from hwprof.analysis.attribution import Attribution
from hwprof.analysis.owners import UNATTRIBUTED, WHOLE
from hwprof.run.manifest import MetricDefinition
from hwprof.run.schema import PROCESS_EVENTS

STATIC = ("macs", "bytes", "parameters")


@dataclass(frozen=True)
class Figures:
    """The figures of some owners (layers, layer types, stages): three tables keyed by ``owner``.

    ``rows``: description, time per iteration and ``share`` (of the whole's time; the rows with what is unattributed add
    up to 1). ``counters``: as ``summary.counts``. ``metrics``: one column a metric, and ``NAME@main`` and
    ``NAME@workers`` of those that can be told by thread.
    """

    rows: pl.DataFrame
    counters: pl.DataFrame
    metrics: pl.DataFrame
    operands: tuple[str, ...]  # those that hold a value for at least one owner
    across_iterations: frozenset[str]  # the metrics that are made of different iterations' medians


def layer_table(
    layers: pl.DataFrame,
    attribution: Attribution,
    definitions: Sequence[MetricDefinition],
    threads: int | None,
    further: pl.DataFrame | None = None,
) -> Figures:
    """One row a leaf layer in execution order, then ``UNATTRIBUTED`` and ``WHOLE``.

    A leaf that was never called keeps its row, without times. ``further``: operands by owner that come from
    elsewhere, as ``uncore.operands`` and ``summary.as_operands`` make them.
    """
    leaves = with_known_work(layers.filter("leaf").unique("path", keep="first").sort("order", maintain_order=True))
    totals = _totals(leaves, timed_owners(attribution))
    if layers.filter(~pl.col("leaf") & (pl.col("calls") > 0))[
        "macs"
    ].has_nulls():  # products beside those of its leaves
        totals = totals.with_columns(macs=pl.lit(None, pl.Int64))
    described = pl.concat([leaves.with_columns(owner="path"), totals], how="diagonal_relaxed")
    return figures(described, attribution.times, attribution.counts, attribution, definitions, threads, further)


def with_known_work(leaves: pl.DataFrame) -> pl.DataFrame:
    """The table ``layers`` with nulls where its figures are not those of the work that is measured: the one forward
    that it is made of did not call a layer which other ones do, or showed no tensor of it. 0 MACs of a layer that was
    called: it has no products (in older runs: none that torch's counter knows)."""
    called = pl.col("calls") > 0
    return leaves.with_columns(
        macs=pl.when(called).then(pl.col("macs")), bytes=pl.when(called & (pl.col("bytes") > 0)).then(pl.col("bytes"))
    )


def sum_where_known(name: str, timed: list[str]) -> pl.Expr:
    """The sum over layers; null where it is not known of one that takes time."""
    value = pl.col(name)
    unknown = (value.is_null() & pl.col("path").is_in(timed)).any()
    return pl.when((value.count() > 0) & ~unknown).then(value.sum())


def timed_owners(attribution: Attribution) -> list[str]:
    """Those that times are reported of."""
    timed = pl.col("iteration").is_in(list(attribution.iterations.timed))
    return attribution.times.filter(timed)["owner"].unique(maintain_order=True).to_list()


def figures(
    described: pl.DataFrame,
    times: pl.DataFrame,
    counts: pl.DataFrame,
    attribution: Attribution,
    definitions: Sequence[MetricDefinition],
    threads: int | None,
    further: pl.DataFrame | None = None,
) -> Figures:
    """Sums up times and counts for the owners in ``described`` (owner, macs, bytes, …), in its order."""
    iterations = attribution.iterations
    timed = summary.times(times, iterations.timed)
    counted = summary.counts(counts)
    static = described.select("owner", "macs", "bytes", pl.lit(threads, dtype=pl.Float64).alias("threads"))
    if further is not None:
        static = static.join(further, on="owner", how="left", maintain_order="left")
    operands = summary.operands(timed, times, counts, static, iterations.counted)
    evaluated = metrics.evaluate(operands, metrics.with_threads(definitions))
    whole = total_time_ns(attribution)
    rows = described.join(timed, on="owner", how="left", maintain_order="left").with_columns(
        share=pl.col("time_total_ns") / pl.lit(whole or None, dtype=pl.Float64)
    )
    return Figures(
        rows,
        counted.filter(~pl.col("event").is_in(PROCESS_EVENTS)).join(described.select("owner"), on="owner", how="semi"),
        evaluated.frame,
        operands.available,
        evaluated.across_iterations,
    )


def module_table(spans: pl.DataFrame, layers: pl.DataFrame, attribution: Attribution) -> pl.DataFrame:
    """One row a module that has layers within it, in the table's order, with the time of its own spans: ``owner``,
    ``type``, the columns of ``summary.times``, and ``share`` of the whole's time. ``spans`` are the pass's."""
    modules = layers.filter(~pl.col("leaf")).unique("path", keep="first").sort("order", maintain_order=True)
    calls = spans.filter(pl.col("kind") == "layer").join(modules.select("path"), on="path", how="semi")
    sums = calls.group_by("iteration", owner="path").agg(
        calls=pl.len().cast(pl.Int64), time_ns=(pl.col("end_ns") - pl.col("begin_ns")).sum()
    )
    timed = summary.times(sums.sort("owner", "iteration"), attribution.iterations.timed)
    whole = pl.lit(total_time_ns(attribution) or None, dtype=pl.Float64)
    described = modules.select("type", owner="path")
    return described.join(timed, on="owner", how="inner", maintain_order="left").with_columns(
        share=pl.col("time_total_ns") / whole
    )


def total_time_ns(attribution: Attribution) -> int:
    """The whole's time, summed over the timed iterations."""
    timed = pl.col("iteration").is_in(list(attribution.iterations.timed))
    return int(attribution.times.filter(timed & (pl.col("owner") == WHOLE))["time_ns"].sum())


def _totals(leaves: pl.DataFrame, timed: list[str]) -> pl.DataFrame:
    """What is known of the rest and of the whole; sums over no known figure are null, not 0."""
    sums = leaves.select(sum_where_known(name, timed).alias(name) for name in STATIC)
    return pl.concat(
        [
            pl.DataFrame({"owner": [UNATTRIBUTED]}),
            sums.with_columns(owner=pl.lit(WHOLE)),
        ],
        how="diagonal_relaxed",
    )
