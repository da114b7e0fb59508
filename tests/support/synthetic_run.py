"""A small run directory with figures that are made up but consistent: for tests of whatever reads runs.

One warm-up iteration, then ``iterations`` measured ones of a five-stage pipeline around a model of two blocks::

    model.0          Conv        (inner)   model.1          Block  (inner)   model.2   Detect (leaf)
    model.0.conv     Conv2d                model.1.cv1      Conv   (inner)
    model.0.act      SiLU                  model.1.cv1.conv Conv2d
                                           model.1.cv1.act  SiLU

Measured iterations with an even index only time their layers, those with an odd one count them as well; stages are
always counted. The ``trace`` pass is slower than ``measure`` and has operators.

With ``hardware`` (the name of a processor's file in the event catalogue) the run has every metric of that processor, an
event set for each group of them, workers that wait half of their time (their CPI is twice the main thread's), slots
that add up, FLOPs that show one layer by Winograd's algorithm, and DRAM traffic.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import polars as pl

from hwprof import __version__
from hwprof.run.directory import RunDirectory, write_table
from hwprof.run.manifest import (
    ClockSnapshot,
    CollectorRecord,
    Disturbance,
    EventInfo,
    IterationRecord,
    Manifest,
    PassRecord,
    WorkloadRecord,
)
from hwprof.run.process_events import COUNTED_WINDOW, WHOLE_PROCESS_TID
from hwprof.run.roles import Role
from tests.support.synthetic_model import MODULES, OPERATORS, STAGES, Module, is_leaf, layer_calls, layers
from tests.support.synthetic_processor import Processor, synthetic_machine

EVENTS: Final = ("task-clock", "page-faults", "instructions", "cycles")
PIDS: Final = {"measure": 4100, "trace": 4200}
START_NS: Final = 50_000_000_000_000
TRAFFIC_NS: Final = 100_000
"""How often the memory controllers are read."""

FLOP_RATIOS: Final = {"model.1.cv1.conv": 0.46, "model.2": 1.02}
"""Counted FLOPs over analytic ones where they are not the same; SiLU counts some without MACs."""

SILU_FLOPS: Final = 5_000_000
QUIET: Final = Disturbance(elapsed_ns=12_000_000, preemptions=1, waited_ns=50_000, stolen_ns=0)
"""Of every iteration, until ``synthetic_variants.disturbed`` says otherwise."""

GAP_NS: Final = 2_000  # between two spans: what no layer owns


def build(root: Path, *, iterations: int | None = None, threads: int = 2, hardware: str | None = None) -> RunDirectory:
    """A completed run of passes ``measure`` and ``trace`` below ``root``; ``threads`` counts the main one.

    By default there are three iterations, or four an event set of the ``hardware``.
    """
    processor = None if hardware is None else Processor(hardware)
    manifest = _manifest(iterations or (processor.iterations if processor else 3), threads, processor)
    run = RunDirectory.create(root, manifest)
    writers = [
        _Pass(record, threads, slowdown, processor)
        for record, slowdown in zip(manifest.passes, (1.0, 1.3), strict=True)
    ]
    for writer in writers:
        writer.write()
    write_table(run.path / "layers.parquet", "layers", layers())
    write_table(run.path / "layer_calls.parquet", "layer_calls", layer_calls())
    for table in ("spans", "counts", "threads", "series"):
        rows = [row for writer in writers for row in writer.rows[table]]
        write_table(run.path / f"{table}.parquet", table, pl.DataFrame(rows, infer_schema_length=None))
    run.save_manifest()
    return run


class _Pass:
    """Lays one pass out on the clock, span by span."""

    def __init__(self, record: PassRecord, threads: int, slowdown: float, processor: Processor | None) -> None:
        self.processor = processor
        assert record.pid is not None and record.begin_ns is not None
        self.record = record
        self.pid = record.pid
        self.tids = [record.pid + number for number in range(threads)]
        self.slowdown = slowdown
        self.now = record.begin_ns + 1_000_000
        self.next_span = 0
        self.rows: dict[str, list[dict[str, Any]]] = {table: [] for table in ("spans", "counts", "threads", "series")}

    def write(self) -> None:
        for number, tid in enumerate(self.tids):
            role, name = ("worker", f"omp-{number}") if number else ("main", "python")
            self._add("threads", pid=self.pid, tid=tid, name=name, role=role)
        for name in ("import", "prepare"):
            region = self._open("region", name, -1, None)
            self.now += 1_499_000
            self._close(region)
        for iteration in self.record.iterations:
            self._iteration(iteration)
        self.record.end_ns = self.now + 1_000_000
        self._series()

    def _iteration(self, record: IterationRecord) -> None:
        whole = self._open("iteration", f"iteration {record.index}", record.index, None)
        for stage in STAGES:
            span = self._open("stage", stage, record.index, whole["span"])
            if stage == "inference":
                self._model(record, span["span"])
            elif stage == "postprocess":
                nms = self._open("stage", "nms", record.index, span["span"])
                self.now += int(150_000 * self.slowdown)
                self._close(nms)
                self._count(nms)
            else:
                self.now += int(200_000 * self.slowdown)
            self._close(span)
            self._count(span)
        self._close(whole)

    def _model(self, record: IterationRecord, stage: int) -> None:
        opened: list[dict[str, Any]] = []
        for module in MODULES:
            while opened and not module.path.startswith(opened[-1]["path"] + "."):
                self._close(opened.pop())
            span = self._open("layer", module.path, record.index, opened[-1]["span"] if opened else stage)
            if not is_leaf(module.path):
                opened.append(span)
                continue
            begin, jitter = self.now, 1 + 0.01 * ((record.index * 7 + len(module.path)) % 5)
            self.now += int(module.duration_ns * self.slowdown * jitter)
            if self.record.name == "trace" and not record.warmup:
                self._operators(module, record.index, begin)
            self._close(span)
            if record.layers_counted:
                self._count(span)
        while opened:
            self._close(opened.pop())

    def _operators(self, module: Module, iteration: int, begin: int) -> None:
        end = self.now
        for depth, name in enumerate(OPERATORS[module.type]):
            inset = 3_000 + 1_000 * depth
            row = self._open("op", name, iteration, None)
            row |= {"begin_ns": begin + inset, "end_ns": end - inset, "input_shapes": f"{module.shapes[0]} 32x3x3x3"}

    def _open(self, kind: str, path: str, iteration: int, parent: int | None) -> dict[str, Any]:
        row = self._add(
            "spans",
            iteration=iteration,
            warmup=iteration == 0,
            span=self.next_span,
            parent=parent,
            pid=self.pid,
            tid=self.tids[0],
            kind=kind,
            path=path,
            begin_ns=self.now,
            end_ns=self.now,
            input_shapes=None,
            call=0 if kind == "layer" else None,
        )
        self.next_span += 1
        return row

    def _close(self, row: dict[str, Any]) -> None:
        row["end_ns"] = self.now
        self.now += GAP_NS

    def _count(self, span: dict[str, Any]) -> None:
        """Two instructions a nanosecond at CPI 1.4 on the main thread; a little less on each worker."""
        duration = span["end_ns"] - span["begin_ns"]
        for number, tid in enumerate(self.tids):
            busy = duration * (10 - number) // 10
            values = {
                "task-clock": busy,
                "page-faults": busy // 50_000,
                "instructions": 2 * busy + number,
                "cycles": int(2.8 * busy),
                "context-switches": duration // 1_000_000 if number == 0 else 0,
            }
            if self.processor is not None:
                values |= {"instructions": 2 * busy // (2 if number else 1)}
                flops = _flops(span["path"]) // len(self.tids)
                counted = self.record.event_sets[self._event_set(span["iteration"])]
                values |= {
                    event: self.processor.count(event, values["cycles"], flops)
                    for event in counted
                    if event not in values
                }
            for event, value in values.items():
                self._add(
                    "counts",
                    iteration=span["iteration"],
                    span=span["span"],
                    tid=tid,
                    event=event,
                    value=value,
                    enabled_ns=duration,
                    running_ns=duration,
                    provenance="measured",
                )
        self._add(
            "counts",
            iteration=span["iteration"],
            span=span["span"],
            tid=WHOLE_PROCESS_TID,
            event=COUNTED_WINDOW,
            value=duration,
            enabled_ns=duration,
            running_ns=duration,
            provenance="measured",
        )

    def _event_set(self, iteration: int) -> int:
        number = next(record for record in self.record.iterations if record.index == iteration).event_set
        assert number is not None
        return number

    def _series(self) -> None:
        begin, end = self.record.begin_ns, self.record.end_ns
        assert begin is not None and end is not None
        for number, time_ns in enumerate(range(begin, end, 1_000_000)):
            values = {
                ("memory/rss", "B"): 300e6 + 4096.0 * number,
                ("memory/pss", "B"): 280e6 + 4096.0 * number,
                ("memory/page-faults", "1/s"): 1000.0 + 10 * (number % 7),
                ("energy/package-0", "J"): 0.025 * number + 0.001 * (number // 5),
            }
            for (name, unit), value in values.items():
                self._add("series", time_ns=time_ns, name=name, unit=unit, value=value)
        for time_ns in range(begin, end, TRAFFIC_NS) if self.processor is not None else ():
            for name, gbytes in (("read", 12), ("write", 5), ("total", 17)):
                moved = float(gbytes * (time_ns - begin))
                self._add("series", time_ns=time_ns, name=f"uncore/dram-{name}", unit="B", value=moved)

    def _add(self, table: str, **values: Any) -> dict[str, Any]:
        row = {"pass": self.record.name, **values}
        self.rows[table].append(row)
        return row


def _flops(path: str) -> int:
    """What all threads count in one call of a layer; in the inference that is the sum, in other stages nothing."""
    if path == "inference":
        return sum(_flops(module.path) for module in MODULES if is_leaf(module.path))
    macs = next((module.macs for module in MODULES if module.path == path), None)
    return 0 if macs is None else round(2 * macs * FLOP_RATIOS.get(path, 1.0)) or SILU_FLOPS


def _manifest(iterations: int, threads: int, processor: Processor | None) -> Manifest:
    sets = processor.sets if processor else [list(EVENTS)]
    records = [
        IterationRecord(
            index=index,
            warmup=index == 0,
            event_set=index // 2 % len(sets),
            layers_counted=index % 2 == 1,
            disturbance=QUIET,
        )
        for index in range(iterations + 1)
    ]
    infos = [
        EventInfo("task-clock", "time on a processor", "ns", "software"),
        EventInfo("page-faults", "page faults, minor and major", "1", "software"),
        EventInfo("instructions", "instructions retired", "1", "hardware"),
        EventInfo("cycles", "core cycles, not halted", "1", "hardware"),
        EventInfo("context-switches", "context switches", "1", "software"),
    ]
    collectors = {"perf": Role.COUNTER, "rapl": Role.ENERGY, "memory": Role.MEMORY}
    if processor is not None:
        known = {info.name for info in infos}
        infos += [event.info(processor.machine) for name, event in processor.events.items() if name not in known]
        collectors["uncore"] = Role.DRAM
    passes = [
        PassRecord(
            name=name,
            status="completed",
            pid=pid,
            main_tid=pid,
            begin_ns=START_NS + number * 60_000_000_000,
            collectors=[CollectorRecord(name=name, state="ran", role=role) for name, role in collectors.items()],
            events=list(infos),
            event_sets=[list(events) for events in sets],
            metrics=list(processor.metrics) if processor else [],
            iterations=records,
        )
        for number, (name, pid) in enumerate(PIDS.items())
    ]
    return Manifest(
        hwprof_version=__version__,
        versions={"python": "3.11.2", "torch": "2.13.0"},
        name="20261121-142501-synthetic",
        created="2026-11-21T14:25:01+00:00",
        command=["hwprof", "collect", "--model", "synthetic"],
        machine=processor.machine if processor else synthetic_machine(),
        clock=ClockSnapshot(
            boottime_ns=START_NS + 7_000_000_000,
            monotonic_ns=START_NS,
            monotonic_raw_ns=START_NS - 1_234_567,
            realtime_ns=1_795_271_101_000_000_000,
        ),
        workload=WorkloadRecord(
            name="synthetic",
            kind="module",
            weights="random (seed 0)",
            parameters=sum(module.parameters for module in MODULES if is_leaf(module.path)),
            threads=threads,
            batch=1,
            input_shapes=["1x3x640x480"],
            sources=["bus.jpg"],
            results=["bus.jpg 640x480: 4 boxes"],
        ),
        passes=passes,
    )
