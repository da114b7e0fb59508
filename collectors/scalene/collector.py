"""The collector ``scalene``: launches the worker under Scalene, switches it on for the iterations that are measured,
and reads its file when all is over."""

from __future__ import annotations

import gzip
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from collectors.scalene import launching
from collectors.scalene.declaration import LIMIT_S, PASS
from collectors.scalene.forgiving import forgive_names, forgive_sources
from collectors.shared.python_origins import framework_paths, profiler_paths
from hwprof import programs
from hwprof.collector import clocks
from hwprof.collector.contract import (
    Availability,
    ClockRecord,
    Collected,
    Collector,
    Note,
    NoteKind,
    OwnPass,
    PassContext,
    Tool,
)
from hwprof.errors import HwprofError
from hwprof.run.details import LineCostsDetail
from hwprof.run.regular_files import read_regular

if TYPE_CHECKING:
    import polars as pl

    from collectors.scalene.profile_file import Profile

ITERATIONS: Final = 5
WARMUP: Final = 1

SHARED_MEMORY: Final = Path("/tmp")
LEFT_OVER: Final = "scalene-*{pid}"
"""What Scalene shares with its library: it stays where Scalene is ended."""

HTML_S: Final = 30.0
HTML: Final = "scalene-profile.html"
"""As it calls that itself."""

LARGEST_BYTES: Final = 512 << 20

STARTS: Final = "starts.json"
"""CLOCK_MONOTONIC before and after profiling was switched on, for whoever reads the times in Scalene's file."""

FOOTPRINT: Final = "memory/scalene"
"""What Python and native code have allocated since, less what they freed."""


class ScaleneCollector(Collector):
    """The worker's instance switches Scalene on and off, the supervisor's launches it and collects the results."""

    def __init__(self) -> None:
        self._running = False

    def availability(self) -> Availability:
        """Where Scalene is installed."""
        if sys.platform != "linux":
            return Availability.no("Scalene is started for Linux here")
        if launching.package() is None:
            return Availability.no("scalene is not installed", "pip install scalene")
        return Availability(tools=(_tool(),))

    def own_passes(self, options: dict[str, Any]) -> Sequence[OwnPass]:
        """One, of a few iterations."""
        return [
            OwnPass(
                name=PASS,
                iterations=ITERATIONS,
                warmup=WARMUP,
                environment=launching.environment(),
                limit_s=float(options.get("scalene_limit", LIMIT_S)),
                limit_option="--scalene-limit",
            )
        ]

    # In the worker

    def start(self, context: PassContext) -> None:
        """Profiling begins. Raises ``HwprofError`` where Scalene does not run this process."""
        module = sys.modules.get("scalene.scalene_profiler")
        if module is None:
            raise HwprofError("the worker does not run under Scalene")
        forgive_names(module)
        begin_ns = time.monotonic_ns()
        module.start()
        starts = {"before_ns": begin_ns, "after_ns": time.monotonic_ns(), "framework_paths": framework_paths()}
        (context.raw / STARTS).write_bytes(msgspec.json.encode(starts))
        self._running = True

    def stop(self) -> Collected:
        """Profiling ends; Scalene writes its file when the process does."""
        if self._running:
            self._running = False
            sys.modules["scalene.scalene_profiler"].stop()
            forgive_sources()
        return Collected()

    # In the supervisor

    def command(self, raw: Path, options: dict[str, Any]) -> Sequence[str]:
        """Scalene with its options."""
        (raw / launching.TEMPORARY).mkdir(exist_ok=True)
        return launching.command(raw)

    def collect_results(self, raw: Path, pid: int) -> Collected:
        """Its lines and its memory over time. Raises ``HwprofError``."""
        from collectors.scalene import profile_file

        starts = _starts(raw)
        try:
            written = read_regular(raw / launching.PROFILE, LARGEST_BYTES)
        except OSError as error:
            raise HwprofError(f"Scalene left no profile: {error.strerror or error}", "see worker.log") from error
        profile = profile_file.read(written)
        _pack(raw, written)
        clock = clocks.fit(FOOTPRINT, [(0, starts["before_ns"], starts["after_ns"])])
        notes = [Note(NoteKind.SCOPE, "Scalene misses frees: memory/rss is what the process had", "memory/scalene")]
        if profile.refused:
            notes.append(Note(NoteKind.INCOMPLETE, f"{profile.refused} lines left out: they are none", "Scalene"))
        if profile.refused_points:
            text = f"{profile.refused_points} points left out: they are none"
            notes.append(Note(NoteKind.INCOMPLETE, text, "memory/scalene"))
        detail = LineCostsDetail(
            version=_version(),
            command=launching.command(raw),
            elapsed_s=profile.elapsed_s,
            samples=sum(line.samples for line in profile.lines),
            profiler_paths=[*profiler_paths(), *launching.ITS_OWN],
            framework_paths=starts["framework_paths"],
            file=launching.PACKED,
            html=_write_html(raw, profile_file.shortened(written)),
        )
        tables = {"python_line_costs": _lines(profile), "series": _footprint(profile, clock)}
        tool = msgspec.structs.replace(_tool(), command=detail.command, clock=clock.name)
        return Collected(tables, notes, detail, clocks=[clock], tools=[tool])

    def clean_up(self, raw: Path, pid: int) -> None:
        """Takes away what Scalene leaves when it is ended: its scripts, and the memory that it shared."""
        shutil.rmtree(raw / launching.TEMPORARY, ignore_errors=True)
        for left in SHARED_MEMORY.glob(LEFT_OVER.format(pid=pid)):
            if left.name.rstrip("0123456789") + str(pid) == left.name:  # not of a longer number
                with suppress(OSError):
                    left.unlink()


class _Starts(msgspec.Struct):
    before_ns: int
    after_ns: int
    framework_paths: list[str]


def _starts(raw: Path) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(read_regular(raw / STARTS, 1 << 20), type=_Starts)
    except (OSError, msgspec.MsgspecError) as error:
        raise HwprofError("it is not known when Scalene began") from error
    return msgspec.structs.asdict(found)


def _lines(profile: Profile) -> pl.DataFrame:
    """The rows of ``python_line_costs``, without ``pass``."""
    import dataclasses

    import polars as pl

    from collectors.scalene.functions import function_at, functions

    spans = {file: functions(Path(file)) for file in {line.file for line in profile.lines}}
    rows = [dataclasses.asdict(line) | {"function": function_at(spans[line.file], line.line)} for line in profile.lines]
    return pl.DataFrame(rows, infer_schema_length=None)


def _footprint(profile: Profile, clock: ClockRecord) -> pl.DataFrame:
    import polars as pl

    times = [clocks.to_monotonic(clock, since_ns) for since_ns, _ in profile.footprint]
    rows = {"time_ns": times, "value": [float(held) for _, held in profile.footprint]}
    frame = pl.DataFrame(rows, schema={"time_ns": pl.Int64, "value": pl.Float64})
    return frame.with_columns(name=pl.lit(FOOTPRINT), unit=pl.lit("B")).sort("time_ns")


def _write_html(raw: Path, shortened: bytes) -> str | None:
    """Scalene's own page, in one file; its name, or None where it was not made."""
    file = raw / "shortened.json"
    command = [sys.executable, "-P", "-m", "scalene", "view", "--standalone", str(file)]
    with suppress(OSError, programs.ProgramError):
        file.write_bytes(shortened)
        programs.run(command, limit_s=HTML_S, folder=raw)
    with suppress(OSError):
        file.unlink()
    return HTML if (raw / HTML).is_file() else None


def _pack(raw: Path, written: bytes) -> None:
    (raw / launching.PACKED).write_bytes(gzip.compress(written, 1, mtime=0))
    (raw / launching.PROFILE).unlink()


def _tool() -> Tool:
    return Tool(name="scalene", version=_version(), path=str(launching.package()))


def _version() -> str:
    try:
        return metadata.version("scalene")
    except metadata.PackageNotFoundError:
        return "unknown"
