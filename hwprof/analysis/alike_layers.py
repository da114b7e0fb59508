"""Layers that are alike: twelve equal blocks are not twelve things to look at."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any, Final

import polars as pl

NUMBER: Final = re.compile(r"\d+")
"""Of a block in a list of blocks, of a layer in a block: ``layers.3.conv2``."""

AS_LONG: Final = 1.5
"""Times as long as another one no layer takes that does the same: shapes do not tell the size of a window."""

Row = dict[str, Any]


def alike(rows: pl.DataFrame) -> list[list[str]]:
    """The owners in ``rows`` (those of ``layers.layer_table``) whose names differ in numbers alone, of one class, with
    the same shapes and work, and about the same time: groups of two and more, each with the longest first."""
    kinds: dict[Hashable, list[Row]] = {}
    for row in rows.iter_rows(named=True):
        if row["leaf"] is not None:  # else it is what no layer owns, or the whole
            kinds.setdefault(_kind(row), []).append(row)
    groups = [group for kind in kinds.values() if len(kind) > 1 for group in _as_long(kind)]
    return [[row["owner"] for row in group] for group in groups if len(group) > 1]


def _as_long(rows: Sequence[Row]) -> list[list[Row]]:
    """Of layers of one kind those that take about as long together."""
    groups: list[list[Row]] = []
    for row in sorted(rows, key=_took, reverse=True):
        if groups and _took(groups[-1][0]) <= AS_LONG * _took(row):
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def _kind(row: Row) -> Hashable:
    if row["input_shapes"] is None and row["leaf"]:
        return str(row["owner"])
    work = (row["parameters"], row["macs"], row["bytes"])
    shapes = (row["input_shapes"], row["output_shapes"], row["more_shapes"])
    return NUMBER.sub("#", row["owner"]), row["type"], shapes, work


def _took(row: Row) -> float:
    """Its share, or where there is none its time."""
    return next((float(row[name]) for name in ("share", "time_median_ns") if row[name] is not None), 0.0)
