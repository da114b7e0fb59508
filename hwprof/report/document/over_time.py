"""What an iteration took, and how fast the core ran, over the time of the pass that times are from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from hwprof.report.document.part import Part
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis


class PartOfTime(msgspec.Struct, kw_only=True, frozen=True):
    """Iterations that follow each other. Seconds are since the first one of all began."""

    begin_s: float  # of the first of them
    end_s: float  # of the last one
    iterations: int  # how many
    disturbed: int  # by others, by their own evidence
    min_ns: int  # the shortest one
    median_ns: float  # half of them took no longer
    max_ns: int  # the longest one
    ghz: float | None  # the core's frequency, the median of its probes; null: not probed


class OverTime(Part, kw_only=True, frozen=True, rename={"pass_": "pass"}):
    """All iterations of one kind after warm-up, those that others disturbed among them. Provenance: measured."""

    pass_: str
    kind: Literal["timed", "counted", "bare"]  # counted: at layer edges; bare: layers were not watched
    iterations: int
    seconds: float  # from the first one's begin to the last one's end
    parts: list[PartOfTime]


PART: Final = OverTime


def build(analysis: RunAnalysis) -> OverTime | Unavailable:
    """From the main pass."""
    from hwprof.analysis.over_time import over_time

    record = analysis.main
    if record is None:
        return Unavailable("no pass was completed")
    found = over_time(record, analysis.of_pass("spans", record), analysis.series(""))
    if found is None:
        return Unavailable("no iteration was measured")
    rows = found.parts.to_dicts()
    first_ns = rows[0]["begin_ns"]
    parts = [
        PartOfTime(
            begin_s=(row.pop("begin_ns") - first_ns) / 1e9,
            end_s=(row.pop("end_ns") - first_ns) / 1e9,
            **row,
        )
        for row in rows
    ]
    seconds = max(part.end_s for part in parts)
    return OverTime(pass_=record.name, kind=found.kind, iterations=found.iterations, seconds=seconds, parts=parts)
