"""Overhead: how much slower the measuring made the measured, by comparing iterations and passes."""

from __future__ import annotations

from typing import Any, Final

import polars as pl

from hwprof.analysis import statistics
from hwprof.analysis.attribution import Attribution
from hwprof.analysis.owners import WHOLE, is_leaf

FEWEST: Final = 2
"""Iterations on each side, with fewer of which nobody knows how much they differ by themselves."""


def counting_overhead(attribution: Attribution) -> pl.DataFrame:
    """By owner: the median time of iterations that counted layers over that of those that only timed them.

    Columns ``owner, base_ns, base_iterations, observed_ns, observed_iterations, ratio, distinguishable``; no rows where
    the pass has only one kind. ``distinguishable``: slower by more than both sides' median absolute deviations
    together, of at least two iterations each; the rest is noise.
    """
    counted = set(attribution.iterations.counted)
    timed = [index for index in attribution.iterations.timed if index not in counted]
    return _ratios(
        attribution.times.filter(pl.col("iteration").is_in(timed)),
        attribution.times.filter(pl.col("iteration").is_in(list(counted))),
    )


def pass_overhead(base: Attribution, observed: Attribution) -> pl.DataFrame:
    """By owner: the median time in the ``observed`` pass (all iterations) over that in the base's timed iterations."""
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
    repeated = pl.min_horizontal("base_iterations", "observed_iterations") >= FEWEST
    apart = pl.col("observed_ns") - pl.col("base_ns") > pl.col("base_mad") + pl.col("observed_mad")
    both = medians[0].join(medians[1], on="owner", how="inner").sort("owner")
    return both.with_columns(ratio=ratio, distinguishable=repeated & apart).drop("base_mad", "observed_mad")
