"""Synthetic runs, and what becomes of them on machines that cannot do everything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import polars as pl

from hwprof.run.directory import RunDirectory, write_table
from hwprof.run.manifest import EventInfo
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


def without_passes(root: Path) -> RunDirectory:
    """A run whose only pass failed before the model was built."""
    run = build(root, iterations=1)
    run.manifest.workload = None
    del run.manifest.passes[1:]
    record = run.manifest.passes[0]
    record.status, record.reason, record.end_ns = "failed", "out of memory", None
    run.save_manifest()
    return run
