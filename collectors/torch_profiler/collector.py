"""PyTorch's own profiler: operators with their input shapes, in the trace pass.

It runs inside the worker. Its stamps are unix time; marks at start and end, recorded by the profiler between two
readings of the monotonic clock, give the conversion and its error.
"""

from __future__ import annotations

import importlib.util
import os
import re
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from hwprof.collector import clocks
from hwprof.collector.contract import Availability, Collected, Collector, Detail, PassContext
from hwprof.run.manifest import ClockRecord

if TYPE_CHECKING:  # imported when recording is over: it brings threads of its own
    import polars as pl

RAW_FILE: Final = "trace.json"
MARK: Final = "hwprof.clock"
MARKS: Final = 8
THREAD_NAME: Final = re.compile(rb'("name": "thread -?\d+ \()(.{0,15}?)(\)"\s*\}\s*\},)', re.DOTALL)
"""A thread's name as the kernel keeps it (TASK_COMM_LEN) in what the profiler writes of it."""

OPERATOR_KINDS: Final = ("cpu_op", "user_annotation")


class _Arguments(msgspec.Struct, gc=False):
    dimensions: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw, name="Input Dims")


class _Event(msgspec.Struct, gc=False):
    """The fields of a trace event that are read here; the decoder skips the others."""

    ph: str
    name: str = ""
    cat: str = ""
    ts: float = 0.0
    dur: float = 0.0
    pid: int | str = 0
    tid: int | str = 0
    args: _Arguments | None = None


class _Document(msgspec.Struct, gc=False):
    """The profiler's file."""

    events: list[_Event] = msgspec.field(name="traceEvents")
    base_ns: int = msgspec.field(default=0, name="baseTimeNanoseconds")

    def unix_ns(self, microseconds: float) -> int:
        return self.base_ns + round(microseconds * 1000)


class OperatorsDetail(Detail, kw_only=True, tag="operators"):
    """How many operators were recorded; ``file``: the profiler's own, in the collector's raw folder."""

    operators: int
    file: str


class TorchProfilerCollector(Collector):
    """torch.profiler with ``record_shapes``: up to 3 times slower on small operators, hence never in ``measure``."""

    def __init__(self) -> None:
        self._profile: Any = None
        self._raw: Path | None = None
        self._brackets: list[tuple[int, int]] = []

    def availability(self) -> Availability:
        """Where torch is installed."""
        if importlib.util.find_spec("torch") is None:
            return Availability.no("torch is not installed", 'pip install -c constraints.txt "hwprof[torch]"')
        return Availability()

    def start(self, context: PassContext) -> None:
        """Begins to record, with the first marks."""
        import torch

        self._raw = context.raw / RAW_FILE
        # What torch.profiler itself drives: when that begins it asks for the settings of the compiler, which imports
        # the whole compiler: two seconds, and 850 modules in the process that is measured.
        self._profile = torch.autograd.profiler.profile(use_cpu=True, use_kineto=True, record_shapes=True)
        self._profile.__enter__()
        self._mark()

    def stop(self) -> Collected:
        """Ends recording, writes the profiler's own file, and reads the operators from it."""
        if self._profile is None or self._raw is None:
            raise RuntimeError("the torch profiler was not started")
        self._mark()
        self._profile.__exit__(None, None, None)
        _export(self._profile, self._raw)
        document = _read(self._raw)
        clock = clocks.fit("torch.profiler", _marks(document, self._brackets))
        operators = _operators(document, clock)
        detail = OperatorsDetail(operators=operators.height, file=RAW_FILE)
        return Collected(tables={"spans": operators}, clocks=[clock], detail=detail)

    def _mark(self) -> None:
        import torch

        for _ in range(MARKS):
            begin = time.monotonic_ns()
            with torch.profiler.record_function(MARK):
                self._brackets.append((begin, time.monotonic_ns()))


def _export(profile: Any, file: Path) -> None:
    """The profiler spells paths its own way (``\\`` becomes ``/``, line feeds vanish) and writes wherever that leads:
    it is given the folder by descriptor."""
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        profile.export_chrome_trace(f"/proc/self/fd/{folder}/{file.name}")
    finally:
        os.close(folder)


def _read(file: Path) -> _Document:
    """The profiler writes threads' names as they are, which any program may choose: a file that is no JSON for them is
    mended. Raises ``msgspec.DecodeError`` where it is none for another reason."""
    written = file.read_bytes()
    try:
        return msgspec.json.decode(written, type=_Document)
    except msgspec.DecodeError:
        mended = THREAD_NAME.sub(_escaped, written)
        document = msgspec.json.decode(mended, type=_Document)
        file.write_bytes(mended)
        return document


def _escaped(found: re.Match[bytes]) -> bytes:
    return found[1] + msgspec.json.encode(found[2].decode(errors="replace"))[1:-1] + found[3]


def _marks(document: _Document, brackets: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """The marks as (foreign_ns, earliest_ns, latest_ns)."""
    stamps = sorted(document.unix_ns(event.ts) for event in document.events if event.ph == "X" and event.name == MARK)
    return [(stamp, low, high) for stamp, (low, high) in zip(stamps, brackets, strict=True)]


def _operators(document: _Document, clock: ClockRecord) -> pl.DataFrame:
    """The ``spans`` rows of the operators, without pass, iteration and span number."""
    import polars as pl

    events = [
        event for event in document.events if event.ph == "X" and event.cat in OPERATOR_KINDS and event.name != MARK
    ]
    begin = [clocks.to_monotonic(clock, document.unix_ns(event.ts)) for event in events]
    return pl.DataFrame(
        {
            "pid": [int(event.pid) for event in events],
            "tid": [int(event.tid) for event in events],
            "kind": ["op"] * len(events),
            "path": [event.name for event in events],
            "begin_ns": begin,
            "end_ns": [at + round(event.dur * 1000) for at, event in zip(begin, events, strict=True)],
            "input_shapes": [_shapes(bytes(event.args.dimensions)) if event.args else None for event in events],
        },
        schema={
            "pid": pl.Int32,
            "tid": pl.Int32,
            "kind": pl.String,
            "path": pl.String,
            "begin_ns": pl.Int64,
            "end_ns": pl.Int64,
            "input_shapes": pl.String,
        },
    )


@cache
def _shapes(dimensions: bytes) -> str | None:
    """Input dimensions as "1x3x640x480 32x3x3x3"; scalars and other values have no shape and are left out."""
    if not dimensions:
        return None
    shapes = [_shape(shape) for shape in msgspec.json.decode(dimensions) if shape]
    return " ".join(shapes) or None


def _shape(sizes: list[Any]) -> str:
    """One shape; of a list of tensors theirs: ``(1x3,1x4)``."""
    if any(isinstance(size, list) for size in sizes):
        return f"({','.join(_shape(one) for one in sizes)})"
    return "x".join(map(str, sizes)) or "scalar"
