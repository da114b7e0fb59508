"""Synthetic runs, and what becomes of them on machines that cannot do everything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import msgspec
import polars as pl

from hwprof.hardware.selection import select
from hwprof.run.directory import RunDirectory, write_table
from hwprof.run.manifest import CoreKind, EventInfo
from tests.synthetic_run import build

Builder: TypeAlias = Callable[[Path], RunDirectory]

HARDWARE = ("cycles", "instructions")
REASON = "the hypervisor (KVM) shows this virtual machine no PMU"
REMEDY = "give it one [QEMU/KVM: -cpu host,pmu=on], or run on real hardware"


def change_table(
    run: RunDirectory, table: str, change: pl.Expr | list[pl.Expr] | None, keep: pl.Expr | None = None
) -> None:
    """Rewrites a table with columns changed and rows kept."""
    frame = run.read(table)
    frame = frame if change is None else frame.with_columns(change)
    write_table(run.path / f"{table}.parquet", table, frame if keep is None else frame.filter(keep))


def without_pmu(root: Path) -> RunDirectory:
    """A run in a virtual machine: software events only, and the collector says why."""
    run = build(root, iterations=4)
    change_table(run, "counts", None, ~pl.col("event").is_in(HARDWARE))
    for record in run.manifest.passes:
        record.event_sets = [["task-clock", "page-faults"]]
        record.events = [info for info in record.events if info.name not in HARDWARE]
        perf = record.collectors[0]
        perf.detail = {"unavailable_events": {name: {"reason": REASON, "remedy": REMEDY} for name in HARDWARE}}
        perf.notes = [f"not counted: {', '.join(HARDWARE)}: {REASON} ({REMEDY})"]
    run.save_manifest()
    return run


def multiplexed(root: Path) -> RunDirectory:
    """A run whose cycles were counted half of the time."""
    run = build(root, iterations=4)
    half = pl.when(pl.col("event") == "cycles")
    halved = [half.then(pl.col(name) // 2).otherwise(name).alias(name) for name in ("value", "running_ns")]
    change_table(run, "counts", halved)
    return run


def with_cache_events(root: Path) -> RunDirectory:
    """A run with an event whose name says less than its meaning, and one that comes from the cache model."""
    run = build(root, iterations=4)
    faults = pl.col("event") == "page-faults"
    change_table(
        run,
        "counts",
        [
            pl.when(faults).then(pl.lit("cache-misses")).otherwise("event").alias("event"),
            pl.when(faults).then(pl.lit("simulated")).otherwise("provenance").alias("provenance"),
        ],
    )
    for record in run.manifest.passes:
        record.event_sets = [["task-clock", "cache-misses", "instructions", "cycles"]]
        record.events[1] = EventInfo("cache-misses", "L2 cache misses (0x0964)", "1", "hardware")
    run.save_manifest()
    return run


def zen(root: Path) -> RunDirectory:
    """Every metric of an AMD processor."""
    return build(root, hardware="amd-zen4")


def xeon(root: Path) -> RunDirectory:
    """Every metric of an Intel processor."""
    return build(root, hardware="intel-sapphire-rapids")


def hybrid(root: Path) -> RunDirectory:
    """Performance and efficiency cores, each of which counts half of every thread's work for itself."""
    run = build(root, iterations=4)
    kinds = ("cpu_core", "cpu_atom")
    machine = run.manifest.machine
    run.manifest.machine = msgspec.structs.replace(
        machine,
        cores=(CoreKind("cpu_core", "intel-golden-cove", (0, 1)), CoreKind("cpu_atom", "intel-gracemont", (2, 3))),
    )
    counts = run.read("counts")
    own = counts.filter(pl.col("event").is_in(HARDWARE))
    parts = [
        own.with_columns(pl.col("value") // 2, event=pl.format("{}/{}/", pl.lit(kind), pl.col("event")))
        for kind in kinds
    ]
    write_table(run.path / "counts.parquet", "counts", pl.concat([counts.join(own, on="event", how="anti"), *parts]))
    names = [f"{kind}/{name}/" for kind in kinds for name in HARDWARE]
    for record in run.manifest.passes:
        record.events = [info for info in record.events if info.name not in HARDWARE]
        record.events += [EventInfo(name, "", "1", "hardware") for name in names]
        record.event_sets = [["task-clock", "page-faults", *names]]
        record.metrics = list(select(["cpi"], run.manifest.machine, Path("/nonexistent"), ()).metrics)
    run.save_manifest()
    return run


def without_passes(root: Path) -> RunDirectory:
    """A run whose only pass failed before the model was built."""
    run = build(root, iterations=1)
    run.manifest.workload = None
    del run.manifest.passes[1:]
    record = run.manifest.passes[0]
    record.status, record.reason, record.end_ns = "failed", "out of memory", None
    run.save_manifest()
    return run
