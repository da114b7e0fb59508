"""What rules look at in a run's model: poolings of the same input, denormal numbers, and what oneDNN reports (fields of
``findings.facts.Facts``)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hwprof.analysis.findings.facts import NOTHING, Fallback, Pooling, Share
from hwprof.analysis.reorders import REORDER
from hwprof.analysis.reported_primitives import reported_primitives

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis

WEIGHTS: Final = "weights"
EVERYWHERE: Final = re.compile(r"max k(\d+)(?:x\1)* s1(?:x1)* p(\d+)(?:x\2)* d1(?:x1)*")
"""A pooling with one window for every place, as wide in each dimension: its size and its padding."""


def model_facts(analysis: RunAnalysis) -> dict[str, Any]:
    """Of the table ``layers``, and of the pass in which oneDNN reported."""
    modules = analysis.modules
    notable = modules.filter((pl.col("denormal_share") > 0) & pl.col("leaf")).unique("path", maintain_order=True)
    return {
        "poolings": poolings(modules),
        "denormals": dict(notable.select("path", "denormal_share").iter_rows()),
        **_primitives(analysis),
    }


def is_compiled(modules: pl.DataFrame) -> bool:
    """Whether any code of the model was compiled; runs of older versions tell only of what is compiled as a whole."""
    return bool(modules["compiled"].any() or "OptimizedModule" in set(modules["type"]))


def poolings(modules: pl.DataFrame) -> list[list[Pooling]]:
    """Of each input that several max poolings read, these, by size. ``modules``: the table ``layers``."""
    rows = modules.drop_nulls(["pooling", "input"]).select("path", "pooling", "input").unique(maintain_order=True)
    groups: dict[int, list[Pooling]] = {}
    for path, pooling, number in rows.iter_rows():
        found = EVERYWHERE.fullmatch(pooling)
        if found is not None and int(found[1]) == 2 * int(found[2]) + 1:
            groups.setdefault(number, []).append(Pooling(path, int(found[1])))
    return [sorted(group, key=lambda one: one.size) for group in groups.values() if len(group) > 1]


def _sampled_reorders(analysis: RunAnalysis, part: float) -> Share:
    """A part of the processor time in oneDNN's reorders, by samples: what oneDNN itself says that one took has in it
    whoever else had the processor meanwhile."""
    rows = analysis.sampled.reorders() if analysis.sampled is not None else []
    whole = next((row for row in rows if row["path"] is None), None)
    return (
        Share(*(part * whole[name] for name in ("share", "share_low", "share_high"))) if whole is not None else NOTHING
    )


def _primitives(analysis: RunAnalysis) -> dict[str, Any]:
    """``weight_reorders``, ``weight_layers`` and ``fallbacks``; nothing where oneDNN reported in no pass."""
    reported = reported_primitives(analysis)
    if reported is None or not reported.found.whole_ns:
        return {}
    changes = reported.found.by_layer.filter(primitive=REORDER)
    of_weights = changes.filter(tensor=WEIGHTS)
    layers = of_weights.group_by("path").agg(pl.col("time_ns").sum()).sort("time_ns", "path", descending=[True, False])
    part = float(layers["time_ns"].sum()) / float(changes["time_ns"].sum() or 1)
    return {
        "weight_reorders": _sampled_reorders(analysis, part),
        "weight_layers": layers["path"].to_list(),
        "fallbacks": [
            Fallback(one["implementation"], one["share"] or 0.0, one["reason"], one["remedy"], one["layers"])
            for one in reported.fallbacks()
        ],
    }
