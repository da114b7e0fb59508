"""The leaf layers summed up by type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hwprof.report.document import figures
from hwprof.report.document.counters import Counters, counters
from hwprof.report.document.figures import Figures, Times
from hwprof.report.document.part import Part
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis

COLUMNS: Final = ("layers", "parameters", "macs", "bytes", "share")


class LayerType(Figures, kw_only=True, frozen=True):
    """All leaf layers of one type."""

    type: str  # the modules' class
    layers: int | None  # how many
    parameters: int | None  # of all of them
    macs: int | None  # of an iteration, by arithmetic on shapes
    bytes: int | None  # of inputs, outputs and weights in an iteration, by arithmetic
    calls: float | None  # in an iteration
    time: Times | None


class LayerTypes(Part, kw_only=True, frozen=True):
    """The types, and what no layer owns."""

    rows: list[LayerType]
    counters: Counters


PART: Final = LayerTypes


def build(analysis: RunAnalysis) -> LayerTypes | Unavailable:
    """From the main pass."""
    if analysis.figures is None:
        return Unavailable("no pass was completed")
    found = analysis.figures.layer_types
    common = figures.by_owner(found)
    rows = [
        LayerType(
            type=row["owner"],
            **{name: row[name] for name in COLUMNS},
            calls=row["calls_per_iteration"],
            time=figures.times(row, "time", "iterations"),
            **common[row["owner"]],
        )
        for row in found.rows.iter_rows(named=True)
    ]
    return LayerTypes(rows=rows, counters=counters(found.counters, [row.type for row in rows]))
