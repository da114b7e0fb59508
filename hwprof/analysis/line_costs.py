"""What lines of Python cost, with whose code they are and which class's function they lie in."""

from __future__ import annotations

from typing import Final

import polars as pl

from hwprof.analysis.python_stacks import Looks
from hwprof.analysis.statistics import wilson

SCHEMA: Final = pl.Schema(
    {
        "file": pl.String(),
        "line": pl.Int32(),
        "function": pl.String(),
        "class_name": pl.String(),  # of the function: a module's type; null: it is in none
        "origin": pl.String(),  # ``python_stacks.Origin``
        "share": pl.Float64(),  # of the profiled time: in Python, in native code and in the kernel
        "share_low": pl.Float64(),  # its 95% interval by the samples of all lines; null: too few to say
        "share_high": pl.Float64(),
        "python_share": pl.Float64(),
        "native_share": pl.Float64(),
        "system_share": pl.Float64(),
        "core_utilization": pl.Float64(),
        "samples": pl.Int64(),
        "allocated_bytes": pl.Int64(),
        "growth_bytes": pl.Int64(),
        "peak_bytes": pl.Int64(),
        "python_allocated_share": pl.Float64(),
        "copy_bytes_per_s": pl.Float64(),
    }
)


def line_costs(rows: pl.DataFrame, whose: Looks) -> pl.DataFrame:
    """Rows of ``python_line_costs`` of one pass in ``SCHEMA``, most time first, then most allocated."""
    share = (pl.col("python_share") + pl.col("native_share") + pl.col("system_share")).clip(0, 1)
    draws = rows["samples"].sum()
    low, high = wilson(pl.col("share"), pl.lit(float(draws or 1)))
    return (
        rows.with_columns(
            share=share,
            origin=whose.origins(rows["file"]),
            class_name=pl.col("function").str.extract(r"([^.]+)\.[^.]+$"),
        )
        .with_columns(share_low=pl.when(draws > 0).then(low), share_high=pl.when(draws > 0).then(high))
        .sort("share", "allocated_bytes", "file", "line", descending=[True, True, False, False])
        .select(SCHEMA.names())
        .cast(SCHEMA)
    )
