"""What lines of Python cost: time, memory, copying."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from hwprof.analysis.reasons import AGAIN
from hwprof.report.document.part import Part
from hwprof.report.document.raw_files import raw_files
from hwprof.report.document.slower import Slower, built
from hwprof.run.roles import Role
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis


class LineCost(msgspec.Struct, kw_only=True, frozen=True):
    """A line; what it calls in the framework is its own. Shares are of the profiled time."""

    file: str  # that it stands in
    line: int  # its number
    function: str | None  # that it stands in
    modules: list[str]  # whose class has the line in one of its functions, in order of the model
    origin: Literal["pipeline", "framework", "profiler"]  # whose it is
    share: float  # in Python, native code and the kernel
    share_low: float | None  # its 95% interval, by the samples
    share_high: float | None  # as share_low
    python_share: float  # in Python
    native_share: float  # in native code
    system_share: float  # in the kernel of the operating system
    core_utilization: float  # 1: all processors
    samples: int  # so many tell of it
    allocated_bytes: int  # in all iterations
    peak_bytes: int  # the most at a time
    python_allocated_share: float  # Python's objects, of what it allocated
    copy_bytes_per_s: float  # that it copies


class Lines(Part, kw_only=True, frozen=True, rename={"pass_": "pass"}):
    """Most time first."""

    pass_: str
    tool: str
    elapsed_s: float  # that was profiled
    samples: int
    rows: list[LineCost]
    iterations: int | None = None  # that were profiled; bytes are of all of them; null: by an older version
    slower: Slower | None = None  # than those of the main pass
    files: tuple[str, ...] = ()  # the tool's own, relative to the run's folder

    def of_pipeline(self) -> list[LineCost]:
        """Those that are neither the framework's nor the profiler's."""
        return [row for row in self.rows if row.origin == "pipeline"]


PART: Final = Lines

ASKED: Final = frozenset({"--scalene", "--full"})


def build(analysis: RunAnalysis) -> Lines | Unavailable:
    """From the pass in which somebody looked at lines."""
    found = analysis.python.line_costs
    if found is None:
        return _why_none(analysis)
    record, detail, rows = found
    return Lines(
        pass_=record.name,
        tool=f"Scalene {detail.version}",
        elapsed_s=detail.elapsed_s,
        samples=detail.samples,
        rows=[LineCost(**row) for row in rows.iter_rows(named=True)],
        iterations=sum(not one.warmup for one in record.iterations),
        slower=built(analysis.python.slower(record)),
        files=tuple(raw_files(analysis.run.path, record, Role.LINES)),
    )


def _why_none(analysis: RunAnalysis) -> Unavailable:
    unfinished = [one for one in analysis.run.manifest.passes if one.status != "completed"]
    for record in analysis.run.manifest.passes:
        for one in record.collectors:
            if one.role is Role.LINES and one.unavailable is not None:
                return Unavailable(f"{one.name}: {one.unavailable.reason}", one.unavailable.remedy)
            if one.role is Role.LINES:
                return Unavailable(f"{one.name} met no line of a file that it can read", "more --iterations")
    if unfinished and ASKED & set(analysis.run.manifest.command):
        return Unavailable(f"pass {unfinished[0].name} {unfinished[0].status}: none came that looks at lines", AGAIN)
    return Unavailable("no pass looked at lines", "hwprof collect --scalene")
