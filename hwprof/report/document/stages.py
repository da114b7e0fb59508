"""The pipeline's stages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hwprof.report.document import figures
from hwprof.report.document.counters import Counters, counters
from hwprof.report.document.figures import Figures, Times
from hwprof.report.document.part import Part
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis

COLUMNS: Final = ("inside", "calls", "total_ns", "share")


class Stage(Figures, kw_only=True, frozen=True):
    """A stage over the timed iterations. Its share is part of the enclosing stage's where ``inside`` names one."""

    name: str  # load, preprocess, inference, postprocess, nms, save; or those of the workload
    inside: str | None  # the stage that it lies in
    calls: int | None  # in all timed iterations
    total_ns: int  # of all of them
    call: Times | None  # of one call


class Stages(Part, kw_only=True, frozen=True):
    """The stages, in order."""

    rows: list[Stage]
    counters: Counters


PART: Final = Stages


def build(analysis: RunAnalysis) -> Stages | Unavailable:
    """From the main pass."""
    if analysis.figures is None:
        return Unavailable("no pass was completed")
    found = analysis.figures.stages
    common = figures.by_owner(found)
    rows = [
        Stage(
            name=row["owner"],
            **{name: row[name] for name in COLUMNS},
            call=figures.times(row, "call", "calls"),
            **common[row["owner"]],
        )
        for row in found.rows.iter_rows(named=True)
    ]
    if not rows:
        return Unavailable("the workload marks no stages")
    return Stages(rows=rows, counters=counters(found.counters, [row.name for row in rows]))
