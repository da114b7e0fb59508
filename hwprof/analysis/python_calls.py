"""Calls of Python's functions, counted one by one."""

from __future__ import annotations

from typing import Final

import polars as pl

from hwprof.analysis.python_stacks import Looks

SCHEMA: Final = pl.Schema(
    {
        "stage": pl.String(),
        "function": pl.String(),
        "file": pl.String(),  # ~: no Python
        "line": pl.Int32(),
        "origin": pl.String(),  # ``python_stacks.Origin``, or builtin
        "calls": pl.Float64(),  # these four: in one iteration
        "primitive_calls": pl.Float64(),  # those that no call of the same function led to
        "self_ns": pl.Float64(),
        "cumulative_ns": pl.Float64(),
        "share": pl.Float64(),  # self time, of all in the stage
    }
)

BUILTIN: Final = "~"


def python_calls(rows: pl.DataFrame, whose: Looks, iterations: int) -> pl.DataFrame:
    """Rows of ``python_calls`` of one pass and so many iterations in ``SCHEMA``, most self time first."""
    origin = (
        pl.when(pl.col("by_profiler"))
        .then(pl.lit("profiler"))
        .when(pl.col("file") == BUILTIN)
        .then(pl.lit("builtin"))
        .otherwise(whose.origins(rows["file"]))
    )
    sums = [pl.col(name) / max(iterations, 1) for name in ("calls", "primitive_calls", "self_ns", "cumulative_ns")]
    share = pl.col("self_ns") / pl.col("self_ns").sum().over("stage").replace(0, None)
    return (
        rows.with_columns(*sums, origin=origin)
        .with_columns(share=share)
        .sort("self_ns", "stage", "function", "file", "line", descending=[True, False, False, False, False])
        .select(SCHEMA.names())
        .cast(SCHEMA)
    )
