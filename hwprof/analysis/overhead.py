"""Overhead: how much slower the measuring made the measured, by comparing iterations and passes."""

from __future__ import annotations

from typing import Any

import polars as pl

from hwprof.analysis import statistics
from hwprof.analysis.attribution import Attribution
from hwprof.analysis.owners import WHOLE, is_leaf


def counting_overhead(attribution: Attribution) -> pl.DataFrame:
    """By owner: the median time of iterations that counted layers over that of those that only timed them.

    Columns ``owner, base_ns, base_iterations, observed_ns, observed_iterations, ratio, error, distinguishable``; no
    rows where the pass has only one kind. ``error``: half of the ratio's 95% interval, null where a side has one
    iteration. ``distinguishable``: slower by more than that; the rest is noise.
    """
    counted = set(attribution.iterations.counted)
    timed = [index for index in attribution.iterations.timed if index not in counted]
    return _ratios(
        attribution.times.filter(pl.col("iteration").is_in(timed)),
        attribution.times.filter(pl.col("iteration").is_in(list(counted))),
    )


def pass_overhead(base: Attribution, observed: Attribution) -> pl.DataFrame:
    """By owner: the median time in the ``observed`` pass (all iterations that are not left out) over that in the base's
    timed iterations."""
    timed = pl.col("iteration").is_in(list(base.iterations.timed))
    return _ratios(base.times.filter(timed), observed.times)


def of_whole(ratios: pl.DataFrame) -> dict[str, Any] | None:
    """The row of the whole without its name; None where one side of it is not known."""
    rows = ratios.filter((pl.col("owner") == WHOLE) & pl.col("ratio").is_not_null()).drop("owner")
    return rows.row(0, named=True) if rows.height else None


def spread(ratios: pl.DataFrame) -> tuple[float, float, float] | None:
    """The layers' quartiles (25 %, 50 %, 75 %) of a table of ratios by owner; None of fewer than two layers,
    which have no spread."""
    layers = ratios.filter(is_leaf(pl.col("owner")))["ratio"].drop_nulls()
    if layers.len() < 2:
        return None
    low, middle, high = (layers.quantile(part, "linear") for part in (0.25, 0.5, 0.75))
    return float(low or 0.0), float(middle or 0.0), float(high or 0.0)


def _ratios(base: pl.DataFrame, observed: pl.DataFrame) -> pl.DataFrame:
    medians = [
        times.group_by("owner").agg(
            pl.col("time_ns").median().alias(f"{name}_ns"),
            pl.len().cast(pl.Int64).alias(f"{name}_iterations"),
            statistics.mad("time_ns").alias(f"{name}_mad"),
        )
        for times, name in ((base, "base"), (observed, "observed"))
    ]
    ratio = pl.when(pl.col("base_ns") > 0).then(pl.col("observed_ns") / pl.col("base_ns"))
    both = medians[0].join(medians[1], on="owner", how="inner").sort("owner").with_columns(ratio=ratio)
    relative = [
        statistics.median_error(f"{side}_mad", f"{side}_iterations") / pl.col(f"{side}_ns")
        for side in ("base", "observed")
    ]
    both = both.with_columns(error=pl.col("ratio") * (relative[0] ** 2 + relative[1] ** 2).sqrt())
    slower = (pl.col("ratio") - 1 > pl.col("error")).fill_null(False)
    return both.with_columns(distinguishable=slower).drop("base_mad", "observed_mad")
