"""PyTorch's own profiler: operators with their input shapes, in the trace pass.

It runs inside the worker. Its stamps are unix time; marks at start and end, recorded by the profiler between two
readings of the monotonic clock, give the conversion and its error.
"""

from __future__ import annotations

import importlib.util
import time
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from collectors.torch_profiler import profile_file
from collectors.torch_profiler.profile_file import ProfileFile, shapes
from hwprof import packages
from hwprof.collector import clocks
from hwprof.collector.contract import Availability, Collected, Collector, Detail, PassContext, Tool
from hwprof.errors import HwprofError
from hwprof.run.manifest import ClockRecord

if TYPE_CHECKING:  # imported when recording is over: it brings threads of its own
    import polars as pl

RAW_FILE: Final = "trace.json.gz"
MARK: Final = "hwprof.clock"
MARKS: Final = 8

TORCH: Final = "memory/torch"
"""What torch has allocated since the profiler began, less what it freed."""
OPERATOR_KINDS: Final = ("cpu_op", "user_annotation")


class OperatorsDetail(Detail, kw_only=True, tag="operators"):
    """How many operators, and allocations and frees, were recorded; ``file``: the profiler's own, in the raw folder."""

    operators: int
    allocations: int = 0
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
            return Availability.no("torch is not installed", packages.TORCH)
        return Availability(tools=(_tool(),))

    def start(self, context: PassContext) -> None:
        """Begins to record, with the first marks."""
        import torch

        self._raw = context.raw / RAW_FILE
        # What torch.profiler itself drives: when that begins it asks for the settings of the compiler, which imports
        # the whole compiler: two seconds, and 850 modules in the process that is measured.
        self._profile = torch.autograd.profiler.profile(
            use_cpu=True, use_kineto=True, record_shapes=True, profile_memory=True
        )
        self._profile.__enter__()
        self._mark()

    def stop(self) -> Collected:
        """Ends recording, writes the profiler's own file, and reads the operators from it."""
        if self._profile is None or self._raw is None:
            raise RuntimeError("the torch profiler was not started")
        self._mark()
        self._profile.__exit__(None, None, None)
        document = profile_file.export(self._profile, self._raw)
        clock = clocks.fit("torch.profiler", _marks(document, self._brackets))
        operators = _operators(document, clock)
        allocations, allocated = _allocations(document, clock)
        detail = OperatorsDetail(operators=operators.height, allocations=allocations.height, file=RAW_FILE)
        tables = {"spans": operators, "allocations": allocations, "series": allocated}
        tool = msgspec.structs.replace(_tool(), clock=clock.name)
        return Collected(tables, detail=detail, clocks=[clock], tools=[tool])

    def _mark(self) -> None:
        import torch

        for _ in range(MARKS):
            begin = time.monotonic_ns()
            with torch.profiler.record_function(MARK):
                self._brackets.append((begin, time.monotonic_ns()))


def _tool() -> Tool:
    """Of torch's version, which need not be loaded for it."""
    found = importlib.util.find_spec("torch")
    path = str(Path(found.origin).parent) if found is not None and found.origin else None
    try:
        return Tool(name="torch.profiler", version=metadata.version("torch"), path=path)
    except metadata.PackageNotFoundError:
        return Tool(name="torch.profiler", path=path)


def _marks(document: ProfileFile, brackets: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """The marks as (foreign_ns, earliest_ns, latest_ns). Raises ``HwprofError`` where not all of them are there."""
    stamps = sorted(document.unix_ns(event.ts) for event in document.events if event.ph == "X" and event.name == MARK)
    if len(stamps) != len(brackets):
        raise HwprofError(
            f"it recorded {len(stamps)} of {len(brackets)} marks: another torch.profiler was at work in the process",
            "take the model's own out while it is measured",
        )
    return [(stamp, low, high) for stamp, (low, high) in zip(stamps, brackets, strict=True)]


def _operators(document: ProfileFile, clock: ClockRecord) -> pl.DataFrame:
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
            "input_shapes": [shapes(bytes(event.args.dimensions)) if event.args else None for event in events],
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


def _allocations(document: ProfileFile, clock: ClockRecord) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows of ``allocations``, and of ``series`` (``TORCH``) how much is allocated, both without pass, by time."""
    import polars as pl

    events = sorted(profile_file.allocations(document), key=lambda event: event.time_us)
    times_ns = [clocks.to_monotonic(clock, document.unix_ns(event.time_us)) for event in events]
    table = pl.DataFrame(
        {
            "time_ns": times_ns,
            "pid": [event.pid for event in events],
            "tid": [event.tid for event in events],
            "address": [event.address for event in events],
            "bytes": [event.bytes for event in events],
        },
        schema={"time_ns": pl.Int64, "pid": pl.Int32, "tid": pl.Int32, "address": pl.UInt64, "bytes": pl.Int64},
    )
    series = table.select(
        "time_ns", name=pl.lit(TORCH), unit=pl.lit("B"), value=pl.col("bytes").cum_sum().cast(pl.Float64)
    )
    return table, series
