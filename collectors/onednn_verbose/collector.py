"""oneDNN's verbose mode, in a few iterations of the trace pass that are there for it alone.

A line costs the executing thread some 9 µs, 8% of yolov8n at 320 px: they come when everything else has been measured.
Which primitives are chosen does not change from one to the next; there are several for the sake of their times.
"""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collectors.onednn_verbose.capture import standard_output_to
from collectors.onednn_verbose.lines import Verbose, parse
from hwprof import packages
from hwprof.collector import clocks
from hwprof.collector.contract import Availability, Collected, Collector, Note, NoteKind, PassContext, Tool
from hwprof.errors import HwprofError
from hwprof.run.details import PrimitivesDetail
from hwprof.run.manifest import ClockRecord

if TYPE_CHECKING:  # imported when measuring is over: it brings threads of its own
    import polars as pl

RAW_FILE: Final = "verbose.txt"
CLOCK: Final = "onednn"
RESOLUTION_NS: Final = 1_250
"""oneDNN takes unix time in whole microseconds, and prints it in milliseconds from a binary fraction of 0.24 µs."""
MARKS: Final = 8
EXECUTION: Final = 1  # the level that reports each executed primitive, and not each created one
LIMITS: Final = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")  # the first that is set holds
STAMPS: Final = {"ONEDNN_VERBOSE_TIMESTAMP": "1"}


class OnednnVerboseCollector(Collector):
    """Which implementation oneDNN chose for each primitive; silent except in iterations of its own."""

    own_iterations = 3

    def __init__(self) -> None:
        self._raw: Path | None = None
        self._brackets: list[tuple[int, int, int]] = []

    def availability(self) -> Availability:
        """Where torch is installed; whether it was built with oneDNN shows when it is loaded."""
        if importlib.util.find_spec("torch") is None:
            return Availability.no("torch is not installed", packages.TORCH)
        return Availability()

    def worker_environment(self) -> Mapping[str, str]:
        """Lines with their time; the variable alone makes oneDNN print nothing."""
        return STAMPS

    def start(self, context: PassContext) -> None:
        """Only looks whether there is a oneDNN. Raises ``HwprofError`` where there is none."""
        import torch

        if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
            raise HwprofError(
                "this build of PyTorch has no oneDNN (torch.backends.mkldnn.is_available() is false)",
                "use a PyTorch built with USE_MKLDNN=1, as the official CPU wheels for x86-64 are",
            )
        self._raw = context.raw / RAW_FILE

    @contextmanager
    def own_iteration(self) -> Iterator[None]:
        """oneDNN reports what it executes inside."""
        if self._raw is None:
            raise RuntimeError("the collector was not started")
        self._mark()
        with standard_output_to(self._raw), _reporting():
            yield
        self._mark()

    def stop(self) -> Collected:
        """What was reported; what others wrote to standard output meanwhile is put where it belongs."""
        if self._raw is None or not self._raw.exists():
            return Collected(notes=[Note(NoteKind.INCOMPLETE, "oneDNN was never asked to report")])
        report = parse(self._raw.read_text(encoding="utf-8", errors="replace").splitlines())
        _give_back(report.other)
        clock = clocks.fit(CLOCK, self._brackets)
        clock = ClockRecord(clock.name, clock.offset_ns, clock.drift, clock.at_ns, clock.error_ns + RESOLUTION_NS)
        return Collected(
            tables={"primitives": _table(report, clock)},
            notes=notes_of(report),
            clocks=[clock],
            detail=PrimitivesDetail(
                file=RAW_FILE,
                primitives=len(report.primitives),
                not_understood=report.not_understood,
                version=report.version,
                instruction_set=report.instruction_set,
                machine_flags=_vector_flags(),
                restricted_to=_restricted_to(),
            ),
            tools=[Tool(name="oneDNN", version=report.version, clock=clock.name)],
        )

    def _mark(self) -> None:
        for _ in range(MARKS):
            begin = time.monotonic_ns()
            now = time.time_ns()
            self._brackets.append((now, begin, time.monotonic_ns()))


def _give_back(lines: Sequence[str]) -> None:
    """What the model printed, as far as standard output takes it: a stream that is gone, or cannot encode it, costs no
    measurement."""
    for line in lines:
        with suppress(OSError, ValueError):
            print(line)


@contextmanager
def _reporting() -> Iterator[None]:
    import torch

    set_level = torch._C._verbose.mkldnn_set_verbose
    set_level(EXECUTION)
    try:
        yield
    finally:
        set_level(0)


def _vector_flags() -> list[str]:
    """The processor's vector extensions, as the kernel calls them."""
    from hwprof.hardware.machine import cpuinfo

    return sorted(flag for flag in cpuinfo().flags if flag.startswith(("sse4", "avx", "amx", "asimd", "sve")))


def _restricted_to() -> str | None:
    """The variable by which the user forbids oneDNN newer instructions, as it is set."""
    limits = [f"{name}={os.environ[name]}" for name in LIMITS if name in os.environ]
    return limits[0] if limits else None


def notes_of(report: Verbose) -> list[Note]:
    """What is to be said of a report as a whole."""
    notes = []
    if report.not_understood:
        text = f"{report.not_understood} lines of oneDNN's report were not understood; they are kept in {RAW_FILE}"
        notes.append(Note(NoteKind.INCOMPLETE, text))
    if report.primitives and all(primitive.begin_ns is None for primitive in report.primitives):
        text = f"oneDNN {report.version or ''} gives no times: its primitives cannot be joined to layers"
        notes.append(Note(NoteKind.INCOMPLETE, text))
    if not report.primitives and not report.not_understood:
        text = "what ran instead stands in hwprof report --kernels"
        notes.append(Note(NoteKind.SCOPE, text, "the reported iterations executed no primitive of oneDNN"))
    return notes


def _table(report: Verbose, clock: ClockRecord) -> pl.DataFrame:
    """The ``primitives`` rows, without ``pass``, on the monotonic clock."""
    import polars as pl

    from hwprof.run.schema import TABLES

    rows = [
        {
            **vars(primitive),
            "order": order,
            "begin_ns": None if primitive.begin_ns is None else clocks.to_monotonic(clock, primitive.begin_ns),
        }
        for order, primitive in enumerate(report.primitives)
    ]
    columns = {name: dtype for name, dtype in TABLES["primitives"].items() if name != "pass"}
    return pl.DataFrame(rows, schema=columns)
