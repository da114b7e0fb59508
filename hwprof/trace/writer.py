"""A run's tables as one Perfetto trace: a process for each pass, its spans, operators and counters below it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl

from hwprof.analysis.slice_facts import SliceFacts
from hwprof.errors import HwprofError, remedy_of_writing
from hwprof.printable import printable
from hwprof.run.atomic import atomic
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import PassRecord
from hwprof.run.tables import readable
from hwprof.trace.analysed import NOTHING, Analysed, analysed
from hwprof.trace.encoder import END, TraceEncoder
from hwprof.trace.flows import FlowNumbers
from hwprof.trace.iterations_shown import Shown, shown
from hwprof.trace.limits import SLICES
from hwprof.trace.pass_writer import PassWriter
from hwprof.trace.primitives import executed

TRACE_FILE: Final = "trace.pftrace"
_BUFFER_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class TraceSummary:
    """What was written."""

    passes: int
    slices: int
    """Of spans: iterations, stages, layers, operators."""
    samples: int
    kernel_slices: int
    """What threads ran by their samples, and when they were off-CPU."""
    primitives: int
    """Of oneDNN."""
    python_functions: int
    """By looks at their stacks."""
    findings: int
    """Over the layers and stages that they are about."""
    values: int
    """Of series; the rates of events come on top."""
    flows: int
    size_bytes: int
    left_out: list[str] = field(default_factory=list)
    """Passes of which some iterations are shown, and how many."""
    notes: list[str] = field(default_factory=list)

    def contents(self) -> str:
        """What the trace holds, in words."""
        slices = self.slices + self.kernel_slices + self.primitives + self.python_functions + self.findings
        counts = {"slices": slices, "samples": self.samples}
        return ", ".join([*(f"{count:,} {what}" for what, count in counts.items() if count), *self.left_out])


_SCANNED: Final = ("spans", "counts", "series", "samples", "switches", "stacks")
"""Tables that are read part by part."""


def is_whole(trace: Path) -> bool:
    """Whether the file ends as a trace of ``write_trace`` does. Raises ``OSError``."""
    with trace.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - len(END), 0))
        return file.read() == END


def write_trace(
    run: RunDirectory,
    target: Path,
    progress: Callable[[int, int], None] | None = None,
    limit: int = SLICES,
    known: Callable[[], SliceFacts | None] = lambda: None,
) -> TraceSummary:
    """Writes the trace of a run from its tables, atomically and without holding a whole table in memory: the analysis
    of a run with samples or peaks does, as a report does, before anything is written.

    ``progress`` is called with the rows written so far and the rows there are. ``limit``: about so many slices are
    written, of whole iterations (see ``iterations_shown``). ``known`` waits for what
    somebody else's analysis says (see ``analysed``), while the passes are written that have nothing of it. Raises
    ``HwprofError`` where the run has no completed pass, or ``target`` cannot be written.
    """
    records = run.completed_passes()
    if not records:
        raise HwprofError(f"{run.path} has no completed pass, so there is nothing to trace", "measure again")
    with readable(run.path):
        for table in _SCANNED:
            run.require_values(table)
        return _written(run, records, target, progress, shown(run, records, limit), lambda: analysed(run, known()))


def _written(
    run: RunDirectory,
    records: list[PassRecord],
    target: Path,
    progress: Callable[[int, int], None] | None,
    shown: dict[str, Shown],
    find: Callable[[], Analysed],
) -> TraceSummary:
    early = run.until({name: one.until_ns for name, one in shown.items() if one.until_ns is not None})
    total = sum(early.scan(table).select(pl.len()).collect().item() for table in ("spans", "series"))
    done = 0

    def advance(rows: int) -> None:
        nonlocal done
        done += rows
        if progress:
            progress(min(done, total), total)  # what is shown over all the time comes on top

    numbers = FlowNumbers()
    pids = _distinct([record.pid for record in records])
    without = _without_times(records)
    written: dict[str, PassWriter] = {}
    try:
        with atomic(target) as part:
            with part.open("wb", buffering=_BUFFER_BYTES) as file:
                does = executed(run)
                writer = TraceEncoder(file, run.manifest.clock)
                timed = []
                for record, pid in sorted(zip(records, pids, strict=True), key=lambda one: one[0].name not in without):
                    of_pass = written[record.name] = PassWriter(run, early, record, pid, writer, does, advance)
                    if record.name in without:
                        of_pass.write(numbers, NOTHING)
                    else:
                        timed.append(of_pass)
                found = find()  # when all is read that can be
                for of_pass in timed:
                    of_pass.write(numbers, found)
                writer.end()
            size_bytes = part.stat().st_size
    except OSError as error:
        raise HwprofError(f"cannot write {target}: {error.strerror or error}", remedy_of_writing(error)) from error
    return TraceSummary(
        passes=len(records),
        slices=sum(pass_.slices for pass_ in written.values()),
        samples=sum(pass_.samples for pass_ in written.values()),
        kernel_slices=sum(pass_.kernel_slices for pass_ in written.values()),
        primitives=sum(pass_.primitives for pass_ in written.values()),
        python_functions=sum(pass_.python_functions for pass_ in written.values()),
        findings=sum(pass_.findings for pass_ in written.values()),
        values=sum(pass_.values for pass_ in written.values()),
        flows=numbers.used,
        size_bytes=size_bytes,
        left_out=[
            f"pass {printable(name)}: {one.iterations:,} of {one.of:,} iterations (--trace-limit)"
            for name, one in shown.items()
            if one.until_ns is not None
        ],
        notes=[
            *([f"no time budgets, bounds and findings: {found.failure}"] if found.failure else []),
            *(
                f"pass {record.name}: slices overlap on one thread; {pass_.extra_tracks} further tracks hold them"
                for record in records
                if (pass_ := written[record.name]).extra_tracks
            ),
        ],
    )


def _without_times(records: list[PassRecord]) -> set[str]:
    """Those whose times are another one's: no figure of ``slice_facts`` is made of such a pass."""
    names = {record.name for record in records}
    return {record.name for record in records if record.times_from in names}


def _distinct(pids: list[int | None]) -> list[int]:
    """The passes' process ids; where one is unknown or used again, the next number that no pass has."""
    taken = {pid for pid in pids if pid}
    free = max(taken, default=0) + 1
    result: list[int] = []
    for pid in pids:
        if pid and pid not in result:
            result.append(pid)
        else:
            result.append(free)
            free += 1
    return result
