"""A small run directory with figures that are made up but consistent: for tests of whatever reads runs.

One warm-up iteration, then ``iterations`` measured ones of a five-stage pipeline around a model of two blocks::

    model.0          Conv        (inner)   model.1          Block  (inner)   model.2   Detect (leaf)
    model.0.conv     Conv2d                model.1.cv1      Conv   (inner)
    model.0.act      SiLU                  model.1.cv1.conv Conv2d
                                           model.1.cv1.act  SiLU

Measured iterations with an even index only time their layers, those with an odd one count them as well; stages are
always counted. The ``trace`` pass is slower than ``measure`` and has operators.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from hwprof import __version__
from hwprof.run.directory import RunDirectory, write_table
from hwprof.run.manifest import (
    Cache,
    ClockSnapshot,
    CollectorRecord,
    EventInfo,
    IterationRecord,
    Machine,
    Manifest,
    PassRecord,
    WorkloadRecord,
)
from hwprof.run.schema import WHOLE_PROCESS_TID

EVENTS: Final = ("task-clock", "page-faults", "instructions", "cycles")
PIDS: Final = {"measure": 4100, "trace": 4200}
START_NS: Final = 50_000_000_000_000
GAP_NS: Final = 2_000  # between two spans: what no layer owns


class Module(NamedTuple):
    """A row of the model: where it stands, what it is, and what one call costs."""

    path: str
    type: str
    duration_ns: int = 0  # leaves only, in the measure pass
    macs: int = 0
    parameters: int = 0
    shapes: tuple[str, str] = ("", "")


MODULES: Final = (
    Module("model.0", "Conv", 0, 11_059_200, 896, ("[1,3,640,480]", "[1,32,160,120]")),
    Module("model.0.conv", "Conv2d", 400_000, 11_059_200, 896, ("[1,3,640,480]", "[1,32,160,120]")),
    Module("model.0.act", "SiLU", 60_000, 0, 0, ("[1,32,160,120]", "[1,32,160,120]")),
    Module("model.1", "Block", 0, 353_894_400, 18_496, ("[1,32,160,120]", "[1,64,160,120]")),
    Module("model.1.cv1", "Conv", 0, 353_894_400, 18_496, ("[1,32,160,120]", "[1,64,160,120]")),
    Module("model.1.cv1.conv", "Conv2d", 900_000, 353_894_400, 18_496, ("[1,32,160,120]", "[1,64,160,120]")),
    Module("model.1.cv1.act", "SiLU", 90_000, 0, 0, ("[1,64,160,120]", "[1,64,160,120]")),
    Module("model.2", "Detect", 250_000, 4_915_200, 260, ("[1,64,160,120]", "[1,100,6]")),
)
STAGES: Final = ("load", "preprocess", "inference", "postprocess", "save")
OPERATORS: Final = {
    "Conv2d": ("aten::conv2d", "aten::convolution", "aten::mkldnn_convolution"),
    "SiLU": ("aten::silu_",),
    "Detect": ("aten::conv2d", "aten::mkldnn_convolution"),
}


def is_leaf(path: str) -> bool:
    """Whether the module has no child."""
    return not any(module.path.startswith(path + ".") for module in MODULES)


def build(root: Path, *, iterations: int = 3, threads: int = 2) -> RunDirectory:
    """A completed run of passes ``measure`` and ``trace`` below ``root``; ``threads`` counts the main one."""
    manifest = _manifest(iterations, threads)
    run = RunDirectory.create(root, manifest)
    writers = [_Pass(record, threads, slowdown) for record, slowdown in zip(manifest.passes, (1.0, 1.3), strict=True)]
    for writer in writers:
        writer.write()
    write_table(run.path / "layers.parquet", "layers", _layers())
    write_table(run.path / "layer_calls.parquet", "layer_calls", _layer_calls())
    for table in ("spans", "counts", "threads", "series"):
        rows = [row for writer in writers for row in writer.rows[table]]
        write_table(run.path / f"{table}.parquet", table, pl.DataFrame(rows, infer_schema_length=None))
    run.save_manifest()
    return run


class _Pass:
    """Lays one pass out on the clock, span by span."""

    def __init__(self, record: PassRecord, threads: int, slowdown: float) -> None:
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
        region = self._open("region", "set-up", -1, None)
        self.now += 3_000_000
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
            if self.record.name == "trace":
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
            row |= {"begin_ns": begin + inset, "end_ns": end - inset, "input_shapes": f"{module.shapes[0]} [32,3,3,3]"}

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
            event="context-switches",
            value=duration // 1_000_000,
            enabled_ns=duration,
            running_ns=duration,
            provenance="measured",
        )

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

    def _add(self, table: str, **values: Any) -> dict[str, Any]:
        row = {"pass": self.record.name, **values}
        self.rows[table].append(row)
        return row


def _layers() -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "order": order,
                "index": int(module.path.split(".")[1]),
                "path": module.path,
                "type": module.type,
                "leaf": is_leaf(module.path),
                "depth": module.path.count("."),
                "parameters": module.parameters,
                "macs": module.macs,
                "bytes": 4 * (module.parameters + 1_000_000) if is_leaf(module.path) else None,
                "calls": 1,
                "input_shapes": module.shapes[0],
                "output_shapes": module.shapes[1],
                "more_shapes": 0,
            }
            for order, module in enumerate(MODULES)
        ]
    )


def _layer_calls() -> pl.DataFrame:
    return _layers().select("path", pl.lit(0).alias("call"), "input_shapes", "output_shapes", "macs", "bytes")


def _manifest(iterations: int, threads: int) -> Manifest:
    records = [
        IterationRecord(index=index, warmup=index == 0, event_set=0, layers_counted=index % 2 == 1)
        for index in range(iterations + 1)
    ]
    passes = [
        PassRecord(
            name=name,
            status="completed",
            pid=pid,
            main_tid=pid,
            begin_ns=START_NS + number * 60_000_000_000,
            collectors=[CollectorRecord(name=collector, state="ran") for collector in ("perf", "rapl", "memory")],
            events=[
                EventInfo("task-clock", "time on a processor", "ns", "software"),
                EventInfo("page-faults", "page faults, minor and major", "1", "software"),
                EventInfo("instructions", "instructions retired", "1", "hardware"),
                EventInfo("cycles", "core cycles, not halted", "1", "hardware"),
                EventInfo("context-switches", "context switches", "1", "software"),
            ],
            event_sets=[list(EVENTS)],
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
        machine=_machine(),
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
            input_shapes=["[1,3,640,480]"],
            sources=["bus.jpg"],
            results=["bus.jpg 640x480: 4 boxes"],
        ),
        passes=passes,
    )


def _machine() -> Machine:
    return Machine(
        hostname="synthetic",
        architecture="x86_64",
        processor="Synthetic CPU @ 2.80GHz",
        vendor="GenuineIntel",
        family=6,
        model=106,
        stepping=6,
        logical_processors=4,
        physical_cores=2,
        sockets=1,
        caches=(
            Cache(1, "data", 49_152, 12, 64, 2),
            Cache(1, "instruction", 32_768, 8, 64, 2),
            Cache(2, "unified", 1_310_720, 20, 64, 2),
            Cache(3, "unified", 56_623_104, 12, 64, 4),
        ),
        memory_bytes=16 << 30,
        kernel="6.1.0",
        system="Debian GNU/Linux 12 (bookworm)",
        hypervisor=None,
        governor="performance",
        pmus=("cpu", "power"),
        has_core_pmu=True,
    )
