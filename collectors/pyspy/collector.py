"""The collector ``pyspy``: Python's call stacks over time, by thread, on hwprof's clock."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from collectors.pyspy import notes
from collectors.pyspy.declaration import RATE
from collectors.pyspy.marks import Marks
from collectors.pyspy.stacks import Frame, read
from collectors.pyspy.watcher import PROGRAM, Watcher, found
from collectors.shared.python_origins import framework_paths, profiler_paths
from hwprof import programs
from hwprof.collector import clocks
from hwprof.collector.contract import Availability, Collected, Collector, PassContext, Tool
from hwprof.errors import HwprofError
from hwprof.run.details import PythonStacksDetail

if TYPE_CHECKING:  # imported when py-spy has ended: it brings threads of its own
    import polars as pl

    from hwprof.run.manifest import ClockRecord

RAW_FILE: Final = "trace.json"

YAMA: Final = Path("/proc/sys/kernel/yama/ptrace_scope")
NOBODY: Final = "3"

TASKS: Final = "/proc/self/task"

VERSION_S: Final = 4.0


class PySpyDetail(PythonStacksDetail, kw_only=True, tag="python_stacks"):
    """``version`` and ``command`` of the program; ``file``: its own, in the collector's raw folder."""

    version: str
    command: list[str]
    marks_met: int
    file: str


class PySpyCollector(Collector):
    """py-spy looks from outside, by default without stopping the process: a stack that changes then may be torn."""

    def __init__(self, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        """``clock_ns``: as that of ``Marks``."""
        self._clock_ns = clock_ns
        self._watcher: Watcher | None = None
        self._marks = Marks(RATE)
        self._context: PassContext | None = None
        self._alive: list[tuple[int, frozenset[int]]] = []

    def availability(self) -> Availability:
        """Where py-spy is installed, and may look at processes."""
        if platform.system() != "Linux":
            return Availability.no(f"py-spy is told who may watch on Linux, not on {platform.system()}")
        program = found()
        if program is None:
            return Availability.no(f"{PROGRAM} is not installed", f"pip install {PROGRAM}")
        tools = (Tool(name=PROGRAM, version=version(program), path=program),)
        if _text(YAMA) == NOBODY:
            return Availability.no(
                f"no process may look at another one here ({YAMA} is {NOBODY})", "an administrator can lower it"
            )
        return Availability(tools=tools)

    def start(self, context: PassContext) -> None:
        """py-spy begins, and meets the first marks. Raises ``HwprofError``."""
        program = found()
        if program is None:
            raise HwprofError(f"{PROGRAM} is not installed", f"pip install {PROGRAM}")
        options = context.options
        rate_hz = int(options.get("pyspy_rate", RATE))
        self._context = context
        self._marks = Marks(rate_hz)
        self._watcher = Watcher(program, arguments(options, rate_hz), context.raw / RAW_FILE)
        self._watcher.begin()
        try:
            self._marks.make()
        except BaseException:  # then nobody calls stop
            self._watcher.kill()
            raise

    def own_processes(self) -> Sequence[int]:
        """py-spy's."""
        pid = self._watcher.pid if self._watcher is not None else None
        return () if pid is None else (pid,)

    def iteration_edge(self) -> None:
        """Which threads there are: py-spy says nothing of those that end."""
        self._alive.append((self._clock_ns(), threads_alive()))

    def stop(self) -> Collected:
        """py-spy ends; its frames on CLOCK_MONOTONIC, without those of marks. Raises ``HwprofError``."""
        watcher, context = self._watcher, self._context
        if watcher is None or context is None:
            return Collected()
        self._watcher = None
        self.iteration_edge()
        try:
            self._marks.make()
        finally:
            looks = watcher.end()
        stacks = read(context.raw / RAW_FILE)
        clock = self._marks.clock(stacks.frames)
        share = notes.failed_share(looks, _mean_threads(stacks.threads, clock, context, self._alive)) if looks else None
        told = [*notes.of_looks(looks, share or 0.0), *notes.of_pauses(looks), *notes.of_stacks(stacks)]
        frames = [frame for frame in stacks.frames if not self._marks.has(frame)]
        detail = PySpyDetail(
            version=version(watcher.command[0]),
            command=watcher.command,
            rate_hz=self._marks.rate_hz,
            frames=len(frames),
            clock=clock.name,
            stacks=looks.stacks if looks else None,
            failed_looks=looks.failed if looks else None,
            failed_share=share,
            behind_s=looks.behind_s if looks else None,
            refused_frames=stacks.refused,
            unknown_lines=stacks.lines_unknown,
            deep_frames=stacks.too_deep,
            profiler_paths=profiler_paths(),
            framework_paths=framework_paths(),
            marks_met=len(stacks.frames) - len(frames),
            file=RAW_FILE,
        )
        table = _table(frames, clock, context, self._alive)
        tool = Tool(
            name=PROGRAM, version=detail.version, command=detail.command, path=watcher.command[0], clock=clock.name
        )
        return Collected({"python_frames": table}, told, detail, clocks=[clock], tools=[tool])


def threads_alive() -> frozenset[int]:
    """The kernel's numbers of this process's threads."""
    return frozenset(map(int, os.listdir(TASKS)))  # noqa: PTH208 - at the edge of an iteration


def arguments(options: dict[str, Any], rate_hz: int) -> list[str]:
    """Of py-spy's command line. Threads that wait are looked at as well: a track without them has holes."""
    arguments = ["--format", "chrometrace", "--threads", "--idle", "--full-filenames", "--rate", str(rate_hz)]
    if options.get("pyspy_native"):
        arguments.append("--native")
    elif not options.get("pyspy_blocking"):
        arguments.append("--nonblocking")
    return arguments


def _table(
    frames: list[Frame], clock: ClockRecord, context: PassContext, alive: Sequence[tuple[int, frozenset[int]]]
) -> pl.DataFrame:
    """The rows of ``python_frames``, without ``pass``; of threads that end until they were seen to be gone."""
    import polars as pl

    rows = pl.DataFrame(
        {
            "tid": [frame.tid for frame in frames],
            "depth": [frame.depth for frame in frames],
            "function": [frame.function for frame in frames],
            "file": [frame.file for frame in frames],
            "line": [frame.line for frame in frames],
            "begin_ns": [clocks.to_monotonic(clock, frame.begin_ns) for frame in frames],
            "end_ns": [clocks.to_monotonic(clock, frame.end_ns) for frame in frames],
        }
    )
    ends = {tid: [at_ns for at_ns, tids in alive if tid not in tids] for tid in rows["tid"].unique()}
    gone = [
        next((at_ns for at_ns in ends[tid] if at_ns > begin_ns), None)
        for tid, begin_ns in rows.select("tid", "begin_ns").iter_rows()
    ]
    rows = rows.with_columns(end_ns=pl.min_horizontal("end_ns", pl.Series(gone, dtype=pl.Int64)))
    return rows.with_columns(pid=pl.lit(context.pid)).sort("tid", "begin_ns", "depth", "end_ns")


def _mean_threads(
    threads: list[Frame], clock: ClockRecord, context: PassContext, alive: Sequence[tuple[int, frozenset[int]]]
) -> float:
    """How many py-spy met, on average over time."""
    if not threads:
        return 0.0
    rows = _table(threads, clock, context, alive)
    lasted = (rows["end_ns"] - rows["begin_ns"]).clip(0).sum()
    return float(lasted) / max(1, rows["end_ns"].max() - rows["begin_ns"].min())  # type: ignore[operator]


@cache
def version(program: str) -> str:
    """Of the program, ``0.4.3``; ``unknown`` where it does not say."""
    try:
        said = programs.run([program, "--version"], limit_s=VERSION_S)
    except programs.ProgramError:
        return "unknown"
    number = re.search(rb"\b\d{1,6}(?:\.\d{1,6}){1,4}\b", said.output)
    return number[0].decode() if number else "unknown"


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return None
