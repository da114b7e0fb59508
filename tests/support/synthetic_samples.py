"""Samples for the ``trace`` pass of a synthetic run: what its threads ran, every ``PERIOD_NS``."""

from __future__ import annotations

from typing import Any, Final

import polars as pl

from hwprof.run.details import PrimitivesDetail, SamplingDetail, as_json
from hwprof.run.directory import RunDirectory, write_table
from hwprof.run.manifest import ClockRecord, CollectorRecord
from hwprof.run.roles import Role

MAIN, WORKER = 4200, 4201
PERIOD_NS: Final = 100_000
TORCH, JIT, BARRIER, UNNAMED = range(4)
KERNELS: Final = (
    ("torch", "libtorch_cpu.so", "at::native::silu_kernel", "at::native::silu_kernel(at::TensorIterator&)", 0x1100),
    ("jit", "jit", "jit_conv_fwd", None, 0x9000),
    ("openmp", "libgomp.so.1", "gomp_barrier_wait", None, 0x3000),
    ("other", "libother.so", None, None, None),
)
FILES: Final = (("/lib/libtorch_cpu.so", 0x1000), ("/lib/libgomp.so.1", 0x3000), ("//anon", 0x9000))
MAPPED_BYTES: Final = 0x1000
PRIMITIVES: Final = (("reorder", "jit:uni"), ("convolution", "brg_conv_fwd:avx512_core"))


def add(run: RunDirectory, *, names: bool = True, lost: int = 0) -> None:
    """Adds tables ``samples``, ``stacks``, ``switches``, ``mappings`` and, with ``names``, ``kernels``.

    The main thread runs a JIT kernel in convolutions and libtorch's elsewhere; the worker helps with the convolutions,
    waits for half of every one of them, and is off its processor from then on.
    """
    spans = run.read("spans").filter((pl.col("pass") == "trace") & (pl.col("kind") == "layer"))
    samples: list[dict[str, Any]] = []
    switches: list[dict[str, Any]] = []
    for span in spans.filter(pl.col("path").str.ends_with(".conv") | pl.col("path").str.ends_with(".act")).to_dicts():
        is_conv = span["path"].endswith(".conv")
        times = range(span["begin_ns"] + PERIOD_NS // 2, span["end_ns"], PERIOD_NS)
        samples += (_sample(time_ns, MAIN, JIT if is_conv else TORCH) for time_ns in times)
        if is_conv:
            half = (span["begin_ns"] + span["end_ns"]) // 2
            samples += (_sample(time_ns + 7, WORKER, JIT if time_ns < half else BARRIER) for time_ns in times)
            switches.append(_switch(span["end_ns"], span["end_ns"] + 1_500))
            if len(switches) % 2:
                switches[-1] |= {"reason": "barrier", "function": "gomp_team_barrier_wait_end"}
    last = max(row["time_ns"] for row in samples)
    samples.append(_sample(last + PERIOD_NS, MAIN, UNNAMED))
    switches.append(_switch(None, samples[0]["time_ns"] - 2 * PERIOD_NS))
    switches.append(_switch(last + PERIOD_NS, None))
    stacks: list[dict[str, Any]] = [
        {"stack": 0, "parent": None, "address": 0x3010, "kernel": BARRIER},
        {"stack": 1, "parent": 0, "address": 0x1110, "kernel": TORCH},
    ]
    mappings: list[dict[str, Any]] = [
        {"time_ns": 0, "pid": MAIN, "address": start, "size_bytes": MAPPED_BYTES, "offset_bytes": 0, "file": file}
        for file, start in FILES
    ]
    kernels: list[dict[str, Any]] = [
        {"kernel": number, "domain": domain, "library": library, "name": name, "full_name": full, "address": address}
        for number, (domain, library, name, full, address) in enumerate(KERNELS)
    ]
    tables: dict[str, list[dict[str, Any]]]
    tables = {"samples": samples, "stacks": stacks, "switches": switches, "mappings": mappings, "kernels": kernels}
    for table, rows in tables.items():
        frame = pl.DataFrame(rows, infer_schema_length=None).with_columns(pl.lit("trace").alias("pass"))
        if not names and "kernel" in frame.columns:
            frame = frame.drop("kernel")
        if names or table != "kernels":
            frame = frame.sort("time_ns") if table == "samples" else frame
            write_table(run.path / f"{table}.parquet", table, frame)
    detail = as_json(SamplingDetail(event="cycles", frequency_hz=10_000, kernel=True, lost=lost))
    run.manifest.passes[1].collectors.append(
        CollectorRecord(name="sampler", state="ran", role=Role.SAMPLER, detail=detail)
    )
    run.save_manifest()


def _sample(time_ns: int, tid: int, kernel: int) -> dict[str, Any]:
    *_, address = KERNELS[kernel]
    return {
        "time_ns": time_ns, "pid": MAIN, "tid": tid, "cpu": tid % 2, "event": "cycles", "period": 280_000 + kernel,
        "cpu_ns": PERIOD_NS, "domain": "user", "address": (address or 0x20_0000) + 4, "kernel": kernel,
        "stack": 1 if kernel == JIT else None, "cycles": 280_000 + kernel, "instructions": 100_000 * (kernel + 1),
        "llc_misses": 10 * kernel,
    }  # fmt: skip


def _switch(out_ns: int | None, in_ns: int | None) -> dict[str, Any]:
    preempted = None if out_ns is None else False
    return {"pid": MAIN, "tid": WORKER, "out_ns": out_ns, "in_ns": in_ns, "out_cpu": 1, "in_cpu": 1,
            "preempted": preempted, "reason": None, "function": None}  # fmt: skip


def add_primitives(run: RunDirectory) -> None:
    """Adds a table ``primitives``: in the last iteration of the ``trace`` pass every convolution executes a reorder and
    then a convolution."""
    spans = run.read("spans").filter((pl.col("pass") == "trace") & pl.col("path").str.ends_with(".conv"))
    last = spans.filter(pl.col("iteration") == pl.col("iteration").max()).sort("begin_ns")
    rows: list[dict[str, Any]] = []
    for begin_ns, end_ns in last.select("begin_ns", "end_ns").iter_rows():
        third_ns = (end_ns - begin_ns) // 3
        for place, (primitive, implementation) in enumerate(PRIMITIVES):
            rows.append(
                {
                    "pass": "trace", "order": len(rows), "begin_ns": begin_ns + 10 + place * third_ns,
                    "time_ns": third_ns - 20, "primitive": primitive, "implementation": implementation,
                    "problem": "mb1_ic3oc16", "data_types": "src:f32 dst:f32",
                    "layouts": "src:abcd dst:aBcd16b",
                }
            )  # fmt: skip
    write_table(run.path / "primitives.parquet", "primitives", pl.DataFrame(rows))
    trace = run.manifest.passes[1]
    trace.clocks.append(ClockRecord("onednn", 0, 0.0, 0, 1))
    detail = as_json(PrimitivesDetail(file="verbose.txt", primitives=len(rows), machine_flags=["avx", "avx512f"]))
    trace.collectors.append(CollectorRecord(name="onednn_verbose", state="ran", detail=detail))
    run.save_manifest()
