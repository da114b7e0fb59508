"""The statistics that polars has no name for, and the set of them that every repeated figure gets."""

from __future__ import annotations

import polars as pl

from hwprof.analysis.intervals import NORMAL_95

SUMMARY = ("median", "mad", "mean", "std", "min", "max")


def mad(column: str) -> pl.Expr:
    """The median absolute deviation from the median, unscaled: half of all values lie within it. 0 for one value."""
    values = pl.col(column)
    return (values - values.median()).abs().median()


def summary(column: str, prefix: str, suffix: str = "") -> list[pl.Expr]:
    """Median, MAD, mean, standard deviation (n - 1; null for one value), minimum and maximum of a column.

    The columns are named ``{prefix}_{statistic}{suffix}``.
    """
    values = pl.col(column)
    expressions = (values.median(), mad(column), values.mean(), values.std(), values.min(), values.max())
    return [
        expression.cast(pl.Float64).alias(f"{prefix}_{name}{suffix}")
        for name, expression in zip(SUMMARY, expressions, strict=True)
    ]


def wilson(share: pl.Expr, trials: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """The 95% Wilson score interval (lower, upper) of a share that ``trials`` independent draws gave: it stays within 0
    and 1, and holds for few draws and for shares of 0 too. Source: E. B. Wilson, JASA 22 (1927)."""
    squared = NORMAL_95**2
    centre = (share + squared / (2 * trials)) / (1 + squared / trials)
    spread = NORMAL_95 / (1 + squared / trials) * (share * (1 - share) / trials + squared / (4 * trials**2)).sqrt()
    # a share of 0 or 1 is its interval's end, which rounding may put beside it
    return pl.min_horizontal(centre - spread, share).clip(0, 1), pl.max_horizontal(centre + spread, share).clip(0, 1)
