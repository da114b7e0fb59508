"""From the analysis's tables to the document's rows."""

from __future__ import annotations

from typing import Any

import polars as pl

from hwprof.analysis.flop_check import FlopCheck
from hwprof.analysis.layers import Figures
from hwprof.analysis.metrics import THREAD_PARTS
from hwprof.report.document.schema import Counter, Layer, LayerType, Stage, ThreadParts, Times

LAYER_COLUMNS = (
    "order", "index", "type", "input_shapes", "output_shapes", "more_shapes", "parameters", "macs", "bytes"
)  # fmt: skip
LAYER_TYPE_COLUMNS = ("layers", "parameters", "macs", "bytes", "share")
STAGE_COLUMNS = ("inside", "calls", "total_ns", "share")


def layers(
    figures: Figures, counting: pl.DataFrame, trace: pl.DataFrame | None, flops: dict[str, FlopCheck]
) -> list[Layer]:
    """The leaf layers, with the sums below them; ``counting`` and ``trace`` are ratios of times by owner."""
    common = _common(figures)
    counting_ratios, trace_ratios = _ratios(counting), _ratios(trace)
    return [
        Layer(
            path=row["owner"],
            **{name: row[name] for name in LAYER_COLUMNS},
            share=row["share"],
            calls=row["calls_per_iteration"],
            time=times(row, "time", "iterations"),
            counting_ratio=counting_ratios.get(row["owner"]),
            trace_ratio=trace_ratios.get(row["owner"]),
            flops=flops.get(row["owner"]),
            **common[row["owner"]],
        )
        for row in figures.rows.iter_rows(named=True)
    ]


def layer_types(figures: Figures) -> list[LayerType]:
    """The layer types."""
    common = _common(figures)
    return [
        LayerType(
            type=row["owner"],
            **{name: row[name] for name in LAYER_TYPE_COLUMNS},
            calls=row["calls_per_iteration"],
            time=times(row, "time", "iterations"),
            **common[row["owner"]],
        )
        for row in figures.rows.iter_rows(named=True)
    ]


def stages(figures: Figures) -> list[Stage]:
    """The stages."""
    common = _common(figures)
    return [
        Stage(
            name=row["owner"],
            **{name: row[name] for name in STAGE_COLUMNS},
            call=times(row, "call", "calls"),
            **common[row["owner"]],
        )
        for row in figures.rows.iter_rows(named=True)
    ]


def times(row: dict[str, Any], prefix: str, repetitions: str) -> Times | None:
    """A row's statistics of a time; None without a value."""
    if row.get(f"{prefix}_median_ns") is None:
        return None
    figures = {f"{name}_ns": row[f"{prefix}_{name}_ns"] for name in ("median", "mad", "mean", "std", "min", "max")}
    return Times(repetitions=row[repetitions], **figures)


def _common(figures: Figures) -> dict[str, dict[str, Any]]:
    """Counters, metrics and metrics by thread of every owner."""
    counters: dict[str, dict[str, Counter]] = {}
    for row in figures.counters.iter_rows(named=True):
        owner, event = row.pop("owner"), row.pop("event")
        counters.setdefault(owner, {})[event] = Counter(**row)
    found = {}
    for row in figures.metrics.iter_rows(named=True):
        owner = row.pop("owner")
        names = dict.fromkeys(key.partition("@")[0] for key in row if "@" in key)
        parts = {name: {part: row.pop(f"{name}@{part}") for part in THREAD_PARTS} for name in names}
        found[owner] = {
            "counters": counters.get(owner, {}),
            "metrics": row,
            "by_thread": {name: ThreadParts(**values) for name, values in parts.items()},
        }
    return found


def _ratios(table: pl.DataFrame | None) -> dict[str, float]:
    return dict(table.select("owner", "ratio").iter_rows()) if table is not None else {}
