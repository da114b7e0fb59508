"""The table ``layers`` with how long each layer took in some forwards of one input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from hwprof.analysis.attribution import Attribution, attribute
from hwprof.analysis.layers import module_table, parameters_of_model, static_rows
from hwprof.analysis.overhead import watching_overhead
from hwprof.analysis.owners import OWN, UNATTRIBUTED, WHOLE
from hwprof.run.manifest import PassRecord
from hwprof.run.schema import empty

COLUMNS: Final = {
    "time_mean_ns": "Float64, mean over the runs; empty (null): it was not called",
    "time_min_ns": "Int64, the least of the runs that called it",
    "share": "Float64, of the means' sum over all rows but the whole; of a module (`--all`) all that is in it",
    "runs": "Int64, how many forwards times are of",
}
"""What is added to the columns of the table ``layers``, with its type and meaning."""

LEAST_SHARE: Final = 0.005
"""Of modules' own code: what takes less, and has no products, can stand together in one row."""


@dataclass(frozen=True)
class ForwardTimes:
    """``rows``: leaves and modules' own code as ``static_rows`` has them, here of all modules that were called, then
    what no module owns, and the whole; ``modules``: all rows of the table ``layers``. Both with ``COLUMNS``.

    ``runs``: how many forwards times are of; ``left_out``: so many more were disturbed; ``disturbed``: of those kept.
    ``watching``: as ``overhead.watching_overhead``.
    """

    rows: pl.DataFrame
    modules: pl.DataFrame
    runs: int
    left_out: int
    disturbed: int
    watching: pl.DataFrame


def forward_times(layers: pl.DataFrame, spans: pl.DataFrame, record: PassRecord) -> ForwardTimes:
    """``spans`` and ``record`` are of a pass whose iterations are forwards of one input."""
    attribution = attribute(spans, empty("counts").drop("pass"), layers, record)
    iterations = attribution.iterations
    owners = _of_owners(attribution)
    rows = static_rows(layers, owners["path"].to_list()).join(owners, on="path", how="left", maintain_order="left")
    modules = _of_modules(spans, layers, attribution, rows)
    return ForwardTimes(
        pl.concat([rows, _totals(rows, layers, owners)], how="diagonal_relaxed"),
        layers.join(modules, on="path", how="left", maintain_order="left"),
        len(iterations.timed),
        len(iterations.left_out),
        len(iterations.disturbed),
        watching_overhead(attribution, record, spans),
    )


def with_small_together(rows: pl.DataFrame) -> pl.DataFrame:
    """The ``rows`` of ``ForwardTimes`` with one row, before the last two, for all own code of less than
    ``LEAST_SHARE``."""
    small = ~pl.col("leaf") & (pl.col("macs") == 0) & (pl.col("share") < LEAST_SHARE)
    together = rows.filter(small)
    if together.height < 2:
        return rows
    sums = together.select(
        pl.col("time_mean_ns", "share").sum(), path=pl.lit(f"{together.height:,} other modules{OWN}")
    )
    others = rows.filter(~small.fill_null(False))
    return pl.concat([others.head(-2), sums, others.tail(2)], how="diagonal")


def _of_owners(attribution: Attribution) -> pl.DataFrame:
    """``path``, the owner of the time, and ``COLUMNS``. Means are over all runs, so they add up to the whole's."""
    timed = attribution.iterations.timed
    times = attribution.times.filter(pl.col("iteration").is_in(list(timed)))
    found = times.group_by(path="owner").agg(
        time_mean_ns=pl.col("time_ns").sum() / len(timed), time_min_ns=pl.col("time_ns").min()
    )
    sum_ns = found.filter(pl.col("path") != WHOLE)["time_mean_ns"].sum() or None
    share = pl.when(pl.col("path") == WHOLE).then(1.0).otherwise(pl.col("time_mean_ns") / pl.lit(sum_ns, pl.Float64))
    return found.with_columns(share=share, runs=pl.lit(len(timed), pl.Int64))


def _of_modules(
    spans: pl.DataFrame, layers: pl.DataFrame, attribution: Attribution, rows: pl.DataFrame
) -> pl.DataFrame:
    """``path`` and ``COLUMNS`` of leaves, and of modules with all that is in them."""
    columns = ["path", *COLUMNS]
    leaves = rows.filter("leaf").select(columns)
    shares = rows.select("share", owner="path")
    found = module_table(spans, layers, attribution, shares).filter(pl.col("time_mean_ns").is_not_null())
    runs = len(attribution.iterations.timed)
    modules = found.select(
        "share",
        path="owner",
        time_mean_ns=pl.col("time_mean_ns") * pl.col("iterations") / runs,
        time_min_ns=pl.col("time_min_ns").cast(pl.Int64),
        runs=pl.lit(runs, pl.Int64),
    )
    return pl.concat([leaves, modules.select(columns)])


def _totals(rows: pl.DataFrame, layers: pl.DataFrame, owners: pl.DataFrame) -> pl.DataFrame:
    """The rows below the others; MACs of the whole only where they are known of every row."""
    macs = None if rows["macs"].has_nulls() else rows["macs"].sum()
    whole = pl.col("path") == WHOLE
    found = owners.filter(pl.col("path").is_in([UNATTRIBUTED, WHOLE])).sort("path")
    return found.with_columns(
        macs=pl.when(whole).then(pl.lit(macs, pl.Int64)),
        parameters=pl.when(whole).then(pl.lit(parameters_of_model(layers, None), pl.Int64)),
    )
