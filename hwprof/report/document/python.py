"""Python's functions and lines, by looks at the stacks of all threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from hwprof.report.document.part import Part
from hwprof.report.document.raw_files import raw_files
from hwprof.report.document.slower import Slower, built
from hwprof.run.roles import Role
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    import polars as pl

    from hwprof.analysis.run_analysis import RunAnalysis


FEW_LOOKS: Final = 10
"""Half of a function's time, or twice of it, may be chance."""

LEAST_SHARE: Final = 0.01
"""Kernels with less of a line's processor time are not listed."""

PLACE: Final = ("file", "line", "function")


class PythonFunction(msgspec.Struct, kw_only=True, frozen=True):
    """What a function took in a stage, in one iteration: the mean of those that times are of."""

    stage: str  # the stage in which
    thread: Literal["main", "other"]  # main: that calls the model; other: all others together
    function: str  # its name
    file: str  # that it stands in
    origin: Literal["pipeline", "framework", "profiler"]  # the framework's: torch's
    looks: float | None  # about so many met it: self time x rate, over all iterations
    inclusive_looks: float | None  # the same of its inclusive time
    self_ns: float  # without the functions that it calls; what native code does for it is its own
    inclusive_ns: float  # with them
    share: float | None  # self time of the stage's time
    share_low: float | None = None  # its 95% interval, by the number of looks
    share_high: float | None = None  # as share_low


class LineKernel(msgspec.Struct, kw_only=True, frozen=True):
    """A kernel that a line led to."""

    kernel: str  # that the line led to; null: all of them
    library: str  # the kernel's
    samples: int
    cpu_ns: float
    share_of_line: float | None  # of the line's processor time


class PythonLine(msgspec.Struct, kw_only=True, frozen=True):
    """The innermost line that is the pipeline's, and what ran for it on all threads, in one iteration. Without
    waiting."""

    file: str | None  # null, as line and function: it is not known, or there is no such line
    line: int | None  # its number
    function: str | None  # that it stands in
    samples: int  # so many tell of it
    cpu_ns: float  # over all threads
    share: float | None  # of the inference's processor time
    share_low: float | None = None  # its 95% interval, by the number of samples, and of looks where these tell the line
    share_high: float | None = None  # as share_low
    kernels: list[LineKernel]  # most processor time first; none that is less than a hundredth of the line's


class Python(Part, kw_only=True, frozen=True, rename={"pass_": "pass"}):
    """By stage, thread and function, most self time first; by line, most processor time first."""

    pass_: str
    rate_hz: float | None  # how often somebody looked
    few_looks: int  # what fewer looks tell of is left to chance
    functions: list[PythonFunction]
    few_samples: int  # what fewer samples tell of is left to chance
    lines: list[PythonLine]
    missing_lines: Unavailable | None
    waiting_share: float | None = None  # of the inference's processor time, in no line
    framework_share: float | None = None  # of the inference's self time, in functions that torch brings
    clock_error_ns: int | None = None  # of the times of the looks
    ends_known: bool = True  # of threads; else what one did last goes on to the end of its iteration
    slower: Slower | None = None  # the pass's iterations than those of the main pass, by all that looks in it
    notes: tuple[str, ...] = ()  # of who looked: what failed, came late or is left out
    files: tuple[str, ...] = ()  # the tool's own, relative to the run's folder


PART: Final = Python


def build(analysis: RunAnalysis) -> Python | Unavailable:
    """From the pass in which somebody looked."""
    from hwprof.analysis.python_stacks import looks_of
    from hwprof.analysis.samples import FEW_SAMPLES

    record, functions, lines = analysis.python.looked_at, analysis.python.functions, analysis.python.lines
    if record is None or functions is None:
        return _why_nobody_looked(analysis)
    return Python(
        pass_=record.name,
        rate_hz=looks_of(record).rate_hz,
        few_looks=FEW_LOOKS,
        functions=[PythonFunction(**row) for row in functions.iter_rows(named=True)],
        few_samples=FEW_SAMPLES,
        lines=[] if isinstance(lines, Unavailable) else _lines(lines),
        missing_lines=lines if isinstance(lines, Unavailable) else None,
        waiting_share=None if isinstance(lines, Unavailable) else _waiting(lines),
        framework_share=_framework(functions),
        clock_error_ns=looks_of(record).error_ns or None,
        ends_known=bool(analysis.run.count_by_pass("lifetimes").get(record.name)),
        slower=built(analysis.python.slower(record)),
        notes=tuple(str(note) for one in record.collectors if one.role is Role.PYTHON for note in one.notes),
        files=tuple(raw_files(analysis.run.path, record, Role.PYTHON)),
    )


def _framework(functions: pl.DataFrame) -> float | None:
    from hwprof.analysis.owners import INFERENCE

    of_stage = functions.filter(stage=INFERENCE)
    whole_ns = float(of_stage["self_ns"].sum())
    return float(of_stage.filter(origin="framework")["self_ns"].sum()) / whole_ns if whole_ns else None


def _why_nobody_looked(analysis: RunAnalysis) -> Unavailable:
    """Who should have, and failed or cannot here; else nobody was asked to."""
    collectors = [
        one
        for record in analysis.run.manifest.passes
        for one in record.collectors
        if one.role is Role.PYTHON and one.unavailable is not None
    ]
    for state, said in (("failed", " failed"), ("unavailable", "")):
        for one in collectors:
            if one.state == state and one.unavailable is not None:
                return Unavailable(f"{one.name}{said}: {one.unavailable.reason}", one.unavailable.remedy)
    return Unavailable("nobody looked at Python's stacks", "hwprof collect --pyspy-passes trace")


def _waiting(table: pl.DataFrame) -> float | None:
    """What no line of ``python_lines.LINES`` has."""
    shares = table.filter(table["kernel"].is_null())["share"]
    return max(0.0, 1 - float(shares.sum())) if shares.count() else None


def _lines(table: pl.DataFrame) -> list[PythonLine]:
    """From ``python_lines.LINES``: each line stands before its kernels."""
    found: list[PythonLine] = []
    for row in table.iter_rows(named=True):
        if row["kernel"] is None:
            place = {name: row[name] for name in PLACE}
            figures = {name: row[name] for name in ("samples", "cpu_ns", "share", "share_low", "share_high")}
            found.append(PythonLine(**place, **figures, kernels=[]))
        elif (row["share_of_line"] or 0) >= LEAST_SHARE:
            found[-1].kernels.append(LineKernel(**{name: row[name] for name in LineKernel.__struct_fields__}))
    return found
