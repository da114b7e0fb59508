"""Layers that did the very same have the same counts by kernel: those are summed once, of however many layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

KEY: Final = "_key"


@dataclass(frozen=True)
class SharedCounts:
    """Which rows by span come to the counts of which layers.

    ``spans``: of each ``bundle`` the spans that have its rows, and how many ``times`` these count. ``bundles``: of each
    ``group`` the bundles that its counts are the sum of; those of what it called count -1 times. ``layers``: of each
    group the layers whose counts these are.
    """

    spans: pl.DataFrame
    bundles: pl.DataFrame
    layers: pl.DataFrame


def with_rows(spans: pl.DataFrame, repeated: pl.DataFrame) -> pl.DataFrame:
    """With the span that has each one's rows, as ``rows_of``. ``repeated``: rows of ``repeated_spans``."""
    found = spans.join(repeated.select("span", rows_of="like"), on="span", how="left")
    return found.with_columns(pl.col("rows_of").fill_null(pl.col("span")))


def shared_counts(modules: pl.DataFrame, repeated: pl.DataFrame) -> SharedCounts:
    """``modules``: ``span``, ``parent`` (the module that called it) and ``layer``."""
    callers = modules.select(parent="span", caller="layer")
    called = with_rows(modules, repeated).join(callers, on="parent", how="left")
    calls = called.group_by("layer", "caller").agg(pl.col("rows_of").sort())
    calls = _numbered(calls, pl.col("rows_of").cast(pl.List(pl.String)).list.join(" "), "bundle")
    spans = calls.unique("bundle").select("bundle", span="rows_of").explode("span")
    own = calls.select("layer", "bundle", times=pl.lit(1, pl.Int64))
    below = calls.drop_nulls("caller").select("bundle", layer="caller", times=pl.lit(-1, pl.Int64))
    sums = pl.concat([own, below], how="diagonal").group_by("layer", "bundle").agg(pl.col("times").sum())
    sums = sums.filter(pl.col("times") != 0).sort("layer", "bundle")
    parts = sums.group_by("layer").agg(parts=pl.format("{}x{}", "times", "bundle").str.join(" "))
    layers = _numbered(parts, pl.col("parts"), "group")
    bundles = sums.join(layers.unique("group").select("layer", "group"), on="layer").drop("layer")
    return SharedCounts(
        spans.group_by("bundle", "span").agg(times=pl.len().cast(pl.Int64)), bundles, layers.select("group", "layer")
    )


def _numbered(rows: pl.DataFrame, key: pl.Expr, number: str) -> pl.DataFrame:
    """With a number each, which those have in common whose keys are the same."""
    keyed = rows.with_columns(key.alias(KEY))
    known = keyed.select(pl.col(KEY).unique()).with_row_index(number)
    return keyed.join(known, on=KEY).drop(KEY)
