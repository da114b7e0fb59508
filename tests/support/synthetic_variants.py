"""Synthetic runs, and what becomes of them on machines that cannot do everything."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeAlias

import msgspec
import polars as pl

from hwprof.hardware.metrics import vocabulary
from hwprof.hardware.selection import select
from hwprof.run.details import CountingDetail, InstrumentedDetail, as_json
from hwprof.run.directory import RunDirectory, write_table
from hwprof.run.manifest import CollectorRecord, CoreKind, Disturbance, EventInfo, PassRecord
from hwprof.run.notes import Note
from hwprof.run.roles import Role
from hwprof.run.schema import conform
from hwprof.unavailable import Unavailable
from tests.support import synthetic_samples
from tests.support.machine_peaks import ZEN
from tests.support.synthetic_model import MODULES, is_leaf
from tests.support.synthetic_run import build
from tests.support.synthetic_samples import JIT, TORCH

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
        why = Unavailable(REASON, REMEDY)
        perf.detail = as_json(CountingDetail(unavailable=dict.fromkeys(HARDWARE, why)))
        perf.notes = [Note.not_available(", ".join(HARDWARE), why)]
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


def under_roofs(root: Path) -> RunDirectory:
    """The same, with that machine's peaks."""
    run = zen(root)
    run.manifest.peaks = ZEN
    run.save_manifest()
    return run


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


def sampled(root: Path) -> RunDirectory:
    """Samples with counters: cycles, instructions and misses of each thread since its last one."""
    run = build(root, iterations=6)
    synthetic_samples.add(run)
    return run


INSTRUCTIONS = "instrumented.instructions"
REFERENCE_GHZ = 2.5
EACH = {JIT: 400_000, TORCH: 50_000}
"""Instructions that each kernel is said to execute in every convolution, and in every other leaf."""


def sampled_without_pmu(root: Path) -> RunDirectory:
    """Samples by processor time, and a pass that counted instructions by kernel."""
    run = without_pmu(root)
    synthetic_samples.add(run)
    nothing = [pl.lit(None, pl.Int64).alias(name) for name in ("cycles", "instructions", "llc_misses")]
    clock = [pl.lit("cpu-clock").alias("event"), pl.col("cpu_ns").alias("period")]
    change_table(run, "samples", [*clock, *nothing])
    follow(run)
    return run


FLOPS, DOUBLES, LOADED = "instrumented.flops-fp32", "instrumented.flops-fp64", "instrumented.load-bytes"
FLOPS_EACH, BYTES_EACH = 200, 8
"""For an instruction of the JIT kernel; the others have no operations, and as many bytes."""


def kernels_under_roofs(root: Path) -> RunDirectory:
    """That pass counted operations and bytes too; nothing has operations in doubles. With the machine's peaks."""
    run = sampled_without_pmu(root)
    counted, counts = run.read("kernel_counts"), run.read("counts")
    flops = counted.filter(pl.col("kernel") == JIT).with_columns(pl.col("value") * FLOPS_EACH, event=pl.lit(FLOPS))
    loaded = counted.with_columns(pl.col("value") * BYTES_EACH, event=pl.lit(LOADED))
    write_table(run.path / "kernel_counts.parquet", "kernel_counts", pl.concat([counted, flops, loaded]))
    doubles = counts.filter(pl.col("event") == INSTRUCTIONS).with_columns(value=0, event=pl.lit(DOUBLES))
    write_table(run.path / "counts.parquet", "counts", pl.concat([counts, conform("counts", doubles)]))
    record = run.manifest.passes[-1]
    record.events += [EventInfo(event, "made up", "1", "instrumented") for event in (FLOPS, DOUBLES, LOADED)]
    known = {name.name: name for name in vocabulary()}
    record.metrics = [
        known["counted_gflops"].defined(f'("{FLOPS}" + "{DOUBLES}") / "time"'),
        known["requested_gbytes"].defined(f'"{LOADED}" / "time"'),
    ]
    run.manifest.peaks = ZEN
    run.save_manifest()
    return run


def alike(root: Path) -> RunDirectory:
    """Several events that an instrumented pass counted equally often in every kernel: nothing but names tells their
    rows apart."""
    run = sampled_without_pmu(root)
    path = run.path / "kernel_counts.parquet"
    counted = run.read("kernel_counts")
    others = [counted.with_columns(event=pl.lit(f"instrumented.{name}")) for name in ("loads", "stores", "branches")]
    write_table(path, "kernel_counts", pl.concat([counted, *others]))
    return run


def follow(run: RunDirectory) -> None:
    """Adds the pass ``instrumented``, of the same work as the others: one iteration."""
    measure = run.manifest.passes[0]
    spans = run.read("spans").filter(pl.col("pass") == "measure")
    last = spans["iteration"].max()
    mine = spans.filter(pl.col("iteration") == last).with_columns(pl.lit("instrumented").alias("pass"))
    types = {module.path: module.type for module in MODULES if is_leaf(module.path)}
    rows = [
        (span, JIT if types[path] == "Conv2d" else TORCH)
        for span, path in mine.filter(pl.col("kind") == "layer").select("span", "path").iter_rows()
        if path in types
    ]
    whole = mine.filter(pl.col("path") == "inference")["span"][0]
    both = [*((span, kernel, EACH[kernel]) for span, kernel in rows)]
    both += [(whole, kernel, sum(value for _, one, value in both if one == kernel)) for kernel in (JIT, TORCH)]
    of_kernels = pl.DataFrame(both, schema=["span", "kernel", "value"], orient="row").with_columns(
        iteration=last, tid=measure.main_tid, event=pl.lit(INSTRUCTIONS), provenance=pl.lit("instrumented")
    )
    of_kernels = of_kernels.with_columns(pl.lit("instrumented").alias("pass"))
    sums = of_kernels.group_by("span").agg(pl.all().exclude("kernel", "value").first(), pl.col("value").sum())
    known = run.read("kernels").filter(pl.col("kernel").is_in([JIT, TORCH]))
    added = {
        "spans": mine,
        "counts": sums.with_columns(enabled_ns=pl.lit(0), running_ns=pl.lit(0)),
        "kernels": known.with_columns(pl.lit("instrumented").alias("pass"), address=pl.lit(0, pl.Int64)),
    }
    for table, frame in added.items():
        write_table(run.path / f"{table}.parquet", table, pl.concat([run.read(table), conform(table, frame)]))
    write_table(run.path / "kernel_counts.parquet", "kernel_counts", of_kernels)
    run.manifest.passes.append(
        PassRecord(
            name="instrumented", status="completed", pid=measure.pid, main_tid=measure.main_tid, times_from="measure",
            begin_ns=measure.begin_ns, end_ns=measure.end_ns, event_sets=[[INSTRUCTIONS]],
            events=[EventInfo(INSTRUCTIONS, "made up", "1", "instrumented")],
            collectors=[_instrumented()],
            iterations=[
                msgspec.structs.replace(entry, event_set=0, layers_counted=True)
                for entry in measure.iterations
                if entry.index == last
            ],
        )
    )  # fmt: skip
    run.save_manifest()


def _instrumented() -> CollectorRecord:
    detail = as_json(InstrumentedDetail(reference_ghz=REFERENCE_GHZ))
    return CollectorRecord(name="instrumented", state="ran", role=Role.COUNTER, detail=detail)


BUSY = Disturbance(elapsed_ns=48_000_000, preemptions=9, waited_ns=36_000_000, stolen_ns=0)
"""Of an iteration beside other programs."""


def disturbed(
    root: Path, *, every: bool = False, which: Collection[int] = (2, 8), passes: Collection[str] = ("measure",)
) -> RunDirectory:
    """A run beside other programs: of twelve iterations, of which the even ones are timed, some are disturbed and four
    times as long; or ``every`` one is disturbed."""
    run = build(root, iterations=12)
    for record in run.manifest.passes:
        hit = [one.index for one in record.iterations if not one.warmup and (every or one.index in which)]
        if record.name in passes:
            record.iterations = [
                msgspec.structs.replace(one, disturbance=BUSY) if one.index in hit else one for one in record.iterations
            ]
    longer = (pl.col("begin_ns") + 4 * (pl.col("end_ns") - pl.col("begin_ns"))).alias("end_ns")
    long = pl.col("pass").is_in(list(passes)) & pl.col("iteration").is_in(list(which))
    change_table(run, "spans", pl.when(long).then(longer).otherwise("end_ns").alias("end_ns"))
    run.save_manifest()
    return run


def throttled(root: Path) -> RunDirectory:
    """A run in a container that gets 0.15 processors, and was stopped for most of the time."""
    run = disturbed(root, every=True)
    record = run.manifest.passes[0]
    record.throttled, record.throttled_ns, record.measured_ns = 120, 4_000_000_000, 5_000_000_000
    run.manifest.machine = msgspec.structs.replace(run.manifest.machine, cpu_limit=0.15)
    run.save_manifest()
    return run
