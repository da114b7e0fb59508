"""What lines of Python cost, with whose code they are and which modules' classes have them."""

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
        "modules": pl.List(pl.String()),  # whose class has the line in one of its functions, in order of the model
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
        "peak_bytes": pl.Int64(),
        "python_allocated_share": pl.Float64(),
        "copy_bytes_per_s": pl.Float64(),
    }
)


def line_costs(rows: pl.DataFrame, whose: Looks, code: pl.DataFrame) -> pl.DataFrame:
    """Rows of ``python_line_costs`` of one pass in ``SCHEMA``, most time first, then most allocated; ``code`` is the
    table ``module_code``."""
    share = (pl.col("python_share") + pl.col("native_share") + pl.col("system_share")).clip(0, 1)
    draws = rows["samples"].sum()
    # a sample of native code stands for all the time that it was late: few of them may carry much
    equal = (pl.col("samples") / pl.col("share")).fill_nan(None).clip(1.0, float(draws or 1)).fill_null(1.0)
    low, high = wilson(pl.col("share"), equal)
    return (
        rows.with_columns(share=share, origin=whose.origins(rows["file"]))
        .join(_modules(rows, code), on=("file", "line"), how="left")
        .with_columns(pl.col("modules").fill_null([]))
        .with_columns(share_low=pl.when(draws > 0).then(low), share_high=pl.when(draws > 0).then(high))
        .sort("share", "allocated_bytes", "file", "line", descending=[True, True, False, False])
        .select(SCHEMA.names())
        .cast(SCHEMA)
    )


def _modules(rows: pl.DataFrame, code: pl.DataFrame) -> pl.DataFrame:
    """``file``, ``line`` and ``modules`` of those that lie in a function of a module's class."""
    functions = code.with_row_index("order").select("order", "path", "file", "first_line", "last_line")
    return (
        rows.select("file", "line")
        .unique()
        .join(functions, on="file")
        .filter(pl.col("line").is_between("first_line", "last_line"))
        .sort("order")
        .group_by("file", "line")
        .agg(modules=pl.col("path").unique(maintain_order=True))
    )
