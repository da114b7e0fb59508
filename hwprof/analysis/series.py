"""Values over time, summed up: one row a pass and series, whichever collector brought it."""

from __future__ import annotations

import polars as pl


def summary(series: pl.DataFrame) -> pl.DataFrame:
    """Of rows of ``series``: ``pass``, ``series``, ``unit``, ``readings``, and of the values ``first``, ``last``,
    ``min``, ``mean``, ``max``, in order of pass and name."""
    value = pl.col("value").sort_by("time_ns")
    return (
        series.group_by("pass", "name", "unit", maintain_order=True)
        .agg(
            readings=pl.len(),
            first=value.first(),
            last=value.last(),
            min=value.min(),
            mean=value.mean(),
            max=value.max(),
        )
        .rename({"name": "series"})
        .sort("pass", "series")
    )
