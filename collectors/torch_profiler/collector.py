"""PyTorch's own profiler: operators with their input shapes, in the trace pass.

It runs inside the worker. Its stamps are unix time; marks, recorded by the profiler between two readings of the
monotonic clock, give the conversion and its error.
"""

from __future__ import annotations

import importlib.util
from importlib import metadata
from pathlib import Path

import msgspec

from collectors.shared import free_memory
from collectors.torch_profiler.recording import RAW_FILE, Recording
from hwprof import packages
from hwprof.collector.contract import Availability, Collected, Collector, Detail, PassContext, Tool


class OperatorsDetail(Detail, kw_only=True, tag="operators"):
    """How many operators, and allocations and frees, were recorded; ``file``: the profiler's own, in the raw folder,
    the first of so many ``files``."""

    operators: int
    allocations: int = 0
    file: str
    files: int = 1


class TorchProfilerCollector(Collector):
    """torch.profiler with ``record_shapes``: up to 3 times slower on small operators, hence never in ``measure``."""

    def __init__(self) -> None:
        self._recording: Recording | None = None

    def availability(self) -> Availability:
        """Where torch is installed."""
        if importlib.util.find_spec("torch") is None:
            return Availability.no("torch is not installed", packages.TORCH)
        return Availability(tools=(_tool(),))

    def start(self, context: PassContext) -> None:
        """Begins to record."""
        self._recording = Recording(context.raw)
        self._recording.begin()

    def between_iterations(self) -> None:
        """What is recorded is written, if it may be much."""
        if self._recording is not None:
            self._recording.go_on()

    def stop(self) -> Collected:
        """Ends recording, and reads the operators from the profiler's own files."""
        if self._recording is None:
            raise RuntimeError("the torch profiler was not started")
        self._recording.end()
        free_memory.give_back()  # it took 2.6 kB for each event
        from collectors.torch_profiler.tables import tables

        clock, found = tables(self._recording)
        detail = OperatorsDetail(
            operators=found["spans"].height,
            allocations=found["allocations"].height,
            file=RAW_FILE,
            files=len(self._recording.files),
        )
        tool = msgspec.structs.replace(_tool(), clock=clock.name)
        return Collected(found, detail=detail, clocks=[clock], tools=[tool])


def _tool() -> Tool:
    """Of torch's version, which need not be loaded for it."""
    found = importlib.util.find_spec("torch")
    path = str(Path(found.origin).parent) if found is not None and found.origin else None
    try:
        return Tool(name="torch.profiler", version=metadata.version("torch"), path=path)
    except metadata.PackageNotFoundError:
        return Tool(name="torch.profiler", path=path)
