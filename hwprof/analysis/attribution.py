"""Who owns what: the time and the counts of every leaf layer in every iteration, and what no layer owns.

In eager inference one leaf layer runs at a time, so what all threads of the process did between a leaf's enter and exit
belongs to that leaf. The rest of the inference is the row ``UNATTRIBUTED``: nothing is dropped, and the rows of an
iteration add up to the whole to the last count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from hwprof.analysis.iterations import Iterations, countable, select
from hwprof.analysis.owners import INFERENCE, UNATTRIBUTED, WHOLE
from hwprof.run.manifest import PassRecord
from hwprof.run.schema import WHOLE_PROCESS_TID

COUNTED: Final = ("value", "main", "workers", "enabled_ns", "running_ns")
AMOUNTS: Final = (*COUNTED, "scaled", "scaled_main", "scaled_workers")
COUNTS_SCHEMA: Final = pl.Schema(
    {
        "owner": pl.String,
        "iteration": pl.Int32,
        "event": pl.String,
        "provenance": pl.String,
        "value": pl.Int64,
        "main": pl.Int64,
        "workers": pl.Int64,
        "scaled": pl.Float64,
        "scaled_main": pl.Float64,
        "scaled_workers": pl.Float64,
        "enabled_ns": pl.Int64,
        "running_ns": pl.Int64,
    }
)
TIMES_SCHEMA: Final = pl.Schema(
    {"owner": pl.String, "iteration": pl.Int32, "layers_counted": pl.Boolean, "calls": pl.Int64, "time_ns": pl.Int64}
)


@dataclass(frozen=True)
class Attribution:
    """What each owner (a leaf layer's path, ``UNATTRIBUTED``, ``WHOLE``) took in each iteration after warm-up.

    ``times``: all iterations. ``counts``: those that counted layers and whose event set holds the event; ``value``,
    ``main`` (the thread that called) and ``workers`` are sums over calls and threads as counted; ``scaled`` is value ×
    enabled / running by thread, which differs only where the kernel multiplexed, and null where a counter never ran.
    """

    times: pl.DataFrame
    counts: pl.DataFrame
    iterations: Iterations
    whole: str  # "inference" or "iteration"
    overlapping_calls: int  # leaf calls that began before the last one ended: their counts cannot be told apart


def attribute(spans: pl.DataFrame, counts: pl.DataFrame, layers: pl.DataFrame, record: PassRecord) -> Attribution:
    """Attributes one pass: ``spans`` and ``counts`` hold its rows only, ``layers`` is the run's layer table."""
    iterations = select(record.iterations)
    kept = spans.join(iterations.frame, on="iteration", how="inner")
    wholes, whole = whole_spans(kept)
    leaves = leaf_spans(kept, layers)
    inside = within(leaves, wholes)
    span_times = pl.concat([_timed(leaves, "path"), _timed(wholes, WHOLE)])
    times = span_times.group_by("owner", "iteration", "layers_counted").agg(
        calls=pl.len().cast(pl.Int64), time_ns=pl.col("time_ns").sum()
    )
    inside_times = _timed(inside, "path").group_by("iteration").agg(pl.col("time_ns").sum())
    usable = countable(record, iterations)
    leaf_counts = owned_counts(_owned(leaves, "path"), counts, usable)
    whole_counts = owned_counts(_owned(wholes, WHOLE), counts, usable)
    inside_counts = owned_counts(_owned(inside, "path"), counts, usable)
    return Attribution(
        pl.concat([times.select(TIMES_SCHEMA.names()), _time_left(times, inside_times)]).sort("owner", "iteration"),
        pl.concat([leaf_counts, whole_counts, _counts_left(whole_counts, inside_counts)]).sort(
            "owner", "iteration", "event"
        ),
        iterations,
        whole,
        overlaps(leaves),
    )


def leaf_spans(spans: pl.DataFrame, layers: pl.DataFrame) -> pl.DataFrame:
    """The spans of leaf layers; a path is a leaf if the layer table says so."""
    leaves = layers.filter("leaf").select("path").unique()
    return spans.filter(pl.col("kind") == "layer").join(leaves, on="path", how="semi")


def whole_spans(spans: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """The spans that leaves must add up to: inference stages; iterations where the pipeline marks no such stage."""
    stages = spans.filter((pl.col("kind") == "stage") & (pl.col("path") == INFERENCE))
    if stages.height:
        return stages, INFERENCE
    return spans.filter(pl.col("kind") == "iteration"), "iteration"


def within(spans: pl.DataFrame, wholes: pl.DataFrame) -> pl.DataFrame:
    """Those of ``spans`` that lie inside one of ``wholes`` in time (on whatever thread); wholes do not overlap."""
    edges = wholes.select("begin_ns", until_ns="end_ns").sort("begin_ns")
    placed = spans.sort("begin_ns").join_asof(edges, on="begin_ns", strategy="backward")
    return placed.filter(pl.col("end_ns") <= pl.col("until_ns")).drop("until_ns")


def overlaps(leaves: pl.DataFrame) -> int:
    """How many leaf calls begin before an earlier one has ended (threads, nested leaves)."""
    ordered = leaves.sort("begin_ns")
    return int(ordered.select((pl.col("begin_ns") < pl.col("end_ns").cum_max().shift(1)).sum()).item() or 0)


def owned_counts(owners: pl.DataFrame, counts: pl.DataFrame, usable: pl.DataFrame | None) -> pl.DataFrame:
    """The counts of spans, summed by owner, iteration and event, in ``COUNTS_SCHEMA``.

    ``owners`` has span, owner and caller (the thread that opened the span); ``usable`` the pairs (iteration, event) of
    the event sets; None: every pair counts.
    """
    rows = counts.join(owners, on="span", how="inner")
    if usable is not None:
        free = ~pl.col("event").is_in(usable["event"].unique().implode())
        rows = pl.concat(
            [rows.filter(free), rows.filter(~free).join(usable, on=["iteration", "event"], how="semi")],
        )
    threads = rows.group_by("owner", "iteration", "event", "tid").agg(
        pl.col("provenance").first(),
        (pl.col("tid") == pl.col("caller")).first().alias("calling"),
        pl.col("value", "enabled_ns", "running_ns").sum(),
    )
    # enabled = running = 0 is a thread that slept throughout: its 0 was counted. enabled > running = 0 tells nothing.
    scaled = (
        pl.when(pl.col("running_ns") >= pl.col("enabled_ns"))
        .then(pl.col("value").cast(pl.Float64))
        .when(pl.col("running_ns") > 0)
        .then(pl.col("value") * (pl.col("enabled_ns") / pl.col("running_ns")))
    )
    process = pl.col("tid") == WHOLE_PROCESS_TID
    main, workers = pl.col("calling"), ~pl.col("calling") & ~process
    return (
        threads.with_columns(scaled=scaled)
        .group_by("owner", "iteration", "event")
        .agg(
            pl.col("provenance").first(),
            pl.col("value").sum(),
            _sum_or_null("value", main).alias("main"),
            _sum_or_null("value", workers).alias("workers"),
            _sum_or_null("scaled", pl.lit(True)).alias("scaled"),
            _sum_or_null("scaled", main).alias("scaled_main"),
            _sum_or_null("scaled", workers).alias("scaled_workers"),
            pl.col("enabled_ns", "running_ns").sum(),
        )
        .select(COUNTS_SCHEMA.names())
        .cast(COUNTS_SCHEMA)
    )


def _sum_or_null(column: str, rows: pl.Expr) -> pl.Expr:
    """The sum over ``rows``; null where there is no such row or one is not known."""
    values = pl.col(column).filter(rows)
    return pl.when((values.len() > 0) & (values.null_count() == 0)).then(values.sum())


def _timed(spans: pl.DataFrame, owner: str) -> pl.DataFrame:
    return spans.select(_owner(owner), "iteration", "layers_counted", time_ns=pl.col("end_ns") - pl.col("begin_ns"))


def _owned(spans: pl.DataFrame, owner: str) -> pl.DataFrame:
    return spans.filter("layers_counted").select("span", _owner(owner), caller="tid")


def _owner(owner: str) -> pl.Expr:
    return (pl.lit(WHOLE) if owner == WHOLE else pl.col(owner)).alias("owner")


def _time_left(times: pl.DataFrame, inside: pl.DataFrame) -> pl.DataFrame:
    """The whole's time minus its leaves': Python between the layers, functional operators, reading the counters."""
    return (
        times.filter(pl.col("owner") == WHOLE)
        .join(inside, on="iteration", how="left", suffix="_inside")
        .with_columns(owner=pl.lit(UNATTRIBUTED), time_ns=pl.col("time_ns") - pl.col("time_ns_inside").fill_null(0))
        .select(TIMES_SCHEMA.names())
    )


def _counts_left(whole: pl.DataFrame, inside: pl.DataFrame) -> pl.DataFrame:
    """The whole's counts minus its leaves'; a scaled value that is not known of one leaf is not known of the rest."""
    sums = inside.group_by("iteration", "event").agg(
        pl.col(name).sum() if name in COUNTED else pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum())
        for name in AMOUNTS
    )
    sums = sums.with_columns(found=pl.lit(True))
    left = whole.join(sums, on=["iteration", "event"], how="left", suffix="_inside")
    return (
        left.select(
            pl.lit(UNATTRIBUTED).alias("owner"),
            "iteration",
            "event",
            "provenance",
            *(
                pl.col(name) - pl.when(pl.col("found").is_null()).then(0).otherwise(pl.col(f"{name}_inside"))
                for name in AMOUNTS
            ),
        )
        .select(COUNTS_SCHEMA.names())
        .cast(COUNTS_SCHEMA)
    )
