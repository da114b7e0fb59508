"""How fast and how small does a trace get written? hwprof's encoder beside Perfetto's own builder and orjson.

    python -m scripts.benchmarks.encoder [--events 1000000] [--rounds 5]

The same events go through every writer, interleaved, in an order that rotates. Each gets them in the form that suits
it (columns for hwprof, Python lists for the others, made before the clock starts) and writes into memory. Peak memory
is that of a fresh process that makes the events batch by batch and writes them to a file.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from hwprof.run.manifest import ClockSnapshot
from hwprof.trace.encoder import Events, EventSequence, TraceEncoder
from hwprof.trace.packets import EventType
from scripts.benchmarks.tables import Table, write

START_NS: Final = 50_000_000_000_000
CLOCK: Final = ClockSnapshot(START_NS, START_NS, START_NS, 1_795_000_000_000_000_000)
BATCH: Final = 100_000
NAMES: Final = [f"aten::operator_{number}" for number in range(100)]
SHAPES: Final = [f"[1,{channels},{side},{side}]" for channels in (32, 64, 128, 256) for side in range(20, 180, 20)]
PID: Final = 1
BUILDER_SHARE: Final = 10
"""Perfetto's builder holds the whole trace: its peak memory is taken with this fraction of the events."""


@dataclass(frozen=True)
class Batch:
    """Operators as a profiler has them: pairs of slices, one inside the other; begins and ends in order of time."""

    time_ns: npt.NDArray[np.int64]
    is_begin: npt.NDArray[np.bool_]
    name: npt.NDArray[np.int64]
    shape: npt.NDArray[np.int64]


def batches(events: int, seed: int = 0) -> Iterator[Batch]:
    """``events`` begins and ends (a multiple of four), with some microseconds between them."""
    random = np.random.default_rng(seed)
    now = START_NS
    for start in range(0, events, BATCH):
        count = min(BATCH, events - start)
        time_ns = now + np.cumsum(random.integers(200, 12_000, count))
        now = int(time_ns[-1])
        is_begin = np.tile(np.array([True, True, False, False]), count // 4)
        yield Batch(time_ns, is_begin, random.integers(0, len(NAMES), count), random.integers(0, len(SHAPES), count))


class Columns:
    """hwprof, by the column."""

    title = "hwprof"

    def __init__(self, file: BinaryIO, detailed: bool) -> None:
        trace = TraceEncoder(file, CLOCK)
        self._sequence: EventSequence = trace.sequence(trace.track("operators", trace.process(PID, "benchmark")))
        self._names = self._sequence.names(NAMES)
        self._detailed = detailed
        if detailed:
            self._shapes, self._category = self._sequence.strings(SHAPES), self._sequence.categories(["op"])[0]

    @staticmethod
    def prepare(batch: Batch) -> Any:
        """The columns as they are."""
        return batch

    def add(self, batch: Batch) -> None:
        """Writes a batch."""
        begin, none = batch.is_begin, np.uint32(0)
        kinds = np.where(begin, np.uint8(EventType.BEGIN), np.uint8(EventType.END))
        names = np.where(begin, self._names[batch.name], none)
        if not self._detailed:
            self._sequence.write(Events(batch.time_ns, kinds, names))
            return
        categories = np.where(begin, self._category, none)
        shapes = {"input_shapes": np.where(begin, self._shapes[batch.shape], none)}
        self._sequence.write(Events(batch.time_ns, kinds, names, categories, shapes))

    def finish(self) -> None:
        """Everything is written already."""


Rows = list[tuple[int, bool, str, str]]


def rows(batch: Batch) -> Rows:
    """The batch for a writer that takes one event after the other."""
    names = [NAMES[code] for code in batch.name.tolist()]
    shapes = [SHAPES[code] for code in batch.shape.tolist()]
    return list(zip(batch.time_ns.tolist(), batch.is_begin.tolist(), names, shapes, strict=True))


class ProtoBuilder:
    """Perfetto's Python package."""

    title = "perfetto TraceProtoBuilder"
    prepare = staticmethod(rows)

    def __init__(self, file: BinaryIO, detailed: bool) -> None:
        from perfetto.trace_builder.proto_builder import TraceProtoBuilder

        self._file, self._detailed = file, detailed
        self._builder = TraceProtoBuilder()
        descriptor = self._builder.add_packet().track_descriptor
        descriptor.uuid, descriptor.name = 1, "operators"

    def add(self, batch: Rows) -> None:
        """Adds a batch to the trace in memory."""
        for time_ns, is_begin, name, shapes in batch:
            packet = self._builder.add_packet()
            packet.timestamp = time_ns
            packet.trusted_packet_sequence_id = 1
            event = packet.track_event
            event.track_uuid = 1
            if is_begin:
                event.type = EventType.BEGIN
                event.name = name
                if self._detailed:
                    event.categories.append("op")
                    annotation = event.debug_annotations.add()
                    annotation.name, annotation.string_value = "input_shapes", shapes
            else:
                event.type = EventType.END

    def finish(self) -> None:
        """Writes the whole trace."""
        self._file.write(self._builder.serialize())


class ChromeJson:
    """Chrome's trace event format through orjson."""

    title = "orjson, Chrome JSON"
    prepare = staticmethod(rows)

    def __init__(self, file: BinaryIO, detailed: bool) -> None:
        import orjson

        self._dumps, self._file, self._detailed = orjson.dumps, file, detailed
        self._file.write(b'{"traceEvents":[')
        self._separator = b""

    def add(self, batch: Rows) -> None:
        """Writes a batch."""
        events: list[dict[str, Any]] = []
        for time_ns, is_begin, name, shapes in batch:
            if not is_begin:
                events.append({"ph": "E", "ts": time_ns / 1e3, "pid": PID, "tid": PID})
            elif self._detailed:
                details = {"cat": "op", "args": {"input_shapes": shapes}}
                events.append({"ph": "B", "name": name, "ts": time_ns / 1e3, "pid": PID, "tid": PID, **details})
            else:
                events.append({"ph": "B", "name": name, "ts": time_ns / 1e3, "pid": PID, "tid": PID})
        self._file.write(self._separator + self._dumps(events)[1:-1])
        self._separator = b","

    def finish(self) -> None:
        """Closes the list."""
        self._file.write(b"]}")


WRITERS: Final[dict[str, Any]] = {"columns": Columns, "builder": ProtoBuilder, "json": ChromeJson}


def encode(name: str, prepared: list[Any], detailed: bool, file: BinaryIO) -> None:
    """Writes all events."""
    writer = WRITERS[name](file, detailed)
    for batch in prepared:
        writer.add(batch)
    writer.finish()


def measure(events: int, rounds: int, detailed: bool) -> dict[str, tuple[list[float], float]]:
    """Of each writer: events per second of each round, and bytes an event."""
    source = list(batches(events))
    prepared = {name: [writer.prepare(batch) for batch in source] for name, writer in WRITERS.items()}
    speeds: dict[str, list[float]] = {name: [] for name in WRITERS}
    sizes: dict[str, float] = {}
    order = list(WRITERS)
    for number in range(rounds):
        for name in order[number % len(order) :] + order[: number % len(order)]:
            file = io.BytesIO()
            gc.collect()
            begin = time.perf_counter()
            encode(name, prepared[name], detailed, file)
            speeds[name].append(events / (time.perf_counter() - begin))
            sizes[name] = len(file.getvalue()) / events
    return {name: (speeds[name], sizes[name]) for name in WRITERS}


def peak(name: str, events: int, detailed: bool) -> int:
    """Writes events to a file, batch by batch; the process's peak memory in bytes."""
    with tempfile.TemporaryFile() as file:
        writer = WRITERS[name](file, detailed)
        for batch in batches(events):
            writer.add(writer.prepare(batch))
        writer.finish()
    status = Path("/proc/self/status").read_text(encoding="ascii")
    # Not ru_maxrss: that of a started process begins with what its parent had when it started it.
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


def peak_in_a_process(name: str, events: int, detailed: bool) -> str:
    """``peak`` of a fresh process."""
    command = [sys.executable, "-m", "scripts.benchmarks.encoder", "--peak", name, "--events", str(events)]
    output = subprocess.check_output(command + ["--detailed"] * detailed, text=True)
    return f"{int(output) / 1e6:.0f} MB ({events / 1e6:g} M events)"


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--events", type=int, default=1_000_000, help="begins and ends in each round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory-events", type=int, default=10_000_000)
    parser.add_argument("--output", type=Path, default=Path("results/encoder.md"))
    parser.add_argument("--peak", choices=list(WRITERS), help=argparse.SUPPRESS)
    parser.add_argument("--detailed", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peak:
        print(peak(arguments.peak, arguments.events, arguments.detailed))
        return
    table_rows: list[list[str]] = []
    for detailed, title in ((False, "name"), (True, "name, category, input shapes")):
        results = measure(arguments.events, arguments.rounds, detailed)
        ours = statistics.median(results["columns"][0])
        for name, (speeds, size) in results.items():
            share = BUILDER_SHARE if name == "builder" else 1
            median = statistics.median(speeds)
            table_rows.append(
                [
                    title,
                    WRITERS[name].title,
                    f"{median / 1e3:,.0f}",
                    f"{min(speeds) / 1e3:,.0f} to {max(speeds) / 1e3:,.0f}",
                    f"{ours / median:.1f}",
                    f"{size:.1f}",
                    peak_in_a_process(name, arguments.memory_events // share // 4 * 4, detailed),
                ]
            )
    note = f"""
{arguments.events:,} slice begins and ends a round, {arguments.rounds} rounds, the writers interleaved; the median over
rounds, and the slowest and fastest round. The load on the machine was {os.getloadavg()[0]:.1f}.
"""
    columns = ["Events carry", "Writer", "1000 events/s", "spread", "hwprof is faster by", "bytes/event", "peak memory"]
    write(Table("Writing a trace", columns, table_rows, note), arguments.output)


if __name__ == "__main__":
    main()
