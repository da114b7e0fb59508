"""Modules that call themselves: such a call's time is in that of the call around it, and counts once."""

from __future__ import annotations

import polars as pl


def with_outermost(spans: pl.DataFrame) -> pl.DataFrame:
    """Spans of modules, in their order, with ``outermost`` (in no other call of the same path on the same thread) and
    ``left_ns``, when the outermost call around each ended."""
    ordered = spans.with_row_index("row").sort("begin_ns", "end_ns", "row", descending=[False, True, False])
    until = pl.col("end_ns").cum_max().shift(1).over("pid", "tid", "path")
    ordered = ordered.with_columns(until_ns=until)
    inside = ((pl.col("begin_ns") < pl.col("until_ns")) & (pl.col("end_ns") <= pl.col("until_ns"))).fill_null(False)
    left = pl.when(inside).then("until_ns").otherwise("end_ns")
    return ordered.with_columns(outermost=~inside, left_ns=left).sort("row").drop("row", "until_ns")


def outermost_calls(spans: pl.DataFrame) -> pl.DataFrame:
    """Spans of modules without those that lie in another call of the same path on the same thread."""
    return with_outermost(spans).filter("outermost").drop("outermost", "left_ns")
