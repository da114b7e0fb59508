"""Calls of Python's functions by stage, counted one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from hwprof.report.document.part import Part
from hwprof.report.document.raw_files import raw_files
from hwprof.report.document.slower import Slower, built
from hwprof.run.roles import Role
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis


class PythonCalls(msgspec.Struct, kw_only=True, frozen=True):
    """A function in a stage, in one iteration. Times are longer than without counting."""

    stage: str  # the stage in which
    function: str  # its name
    file: str  # ~: no Python
    line: int  # where it begins
    origin: Literal["pipeline", "framework", "profiler", "builtin"]  # whose it is
    calls: float  # in an iteration
    primitive_calls: float  # those that no call of the same function led to
    self_ns: float  # without the functions that it calls
    cumulative_ns: float  # with them
    share: float | None  # self time, of all in the stage


class CProfile(Part, kw_only=True, frozen=True, rename={"pass_": "pass"}):
    """Most self time first."""

    pass_: str
    iterations: int
    slower: Slower | None
    rows: list[PythonCalls]
    notes: tuple[str, ...] = ()  # why calls are missing
    files: tuple[str, ...] = ()  # the tool's own, relative to the run's folder

    def listed(self) -> list[PythonCalls]:
        """All but the profiler's."""
        return [row for row in self.rows if row.origin != "profiler"]


PART: Final = CProfile


def build(analysis: RunAnalysis) -> CProfile | Unavailable:
    """From the pass in which calls were counted."""
    found = analysis.python.calls
    if found is None:
        return _why_nobody_counted(analysis)
    return CProfile(
        pass_=found.record.name,
        iterations=found.detail.iterations,
        slower=built(found.slower),
        rows=[PythonCalls(**row) for row in found.rows.iter_rows(named=True)],
        notes=tuple(str(note) for note in found.notes),
        files=tuple(raw_files(analysis.run.path, found.record, Role.CALLS)),
    )


def _why_nobody_counted(analysis: RunAnalysis) -> Unavailable:
    """Who should have, and failed; else nobody was asked to."""
    for record in analysis.run.manifest.passes:
        for one in record.collectors:
            if one.role is Role.CALLS and one.unavailable is not None:
                return Unavailable(f"{one.name} failed: {one.unavailable.reason}", one.unavailable.remedy)
    return Unavailable("no iteration was profiled", "hwprof collect --cprofile")
