"""The document's part on samples, from a run's tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import polars as pl

from hwprof.analysis import instrumented, kernel_cpi, sampled_kernels, samples, waiting
from hwprof.analysis.attribution import WHOLE, attribute
from hwprof.analysis.kernel_cpi import FEW
from hwprof.analysis.missing import Missing
from hwprof.analysis.sampled_pass import SampledPass
from hwprof.report.document.instrumented import INSTRUCTIONS, Found
from hwprof.report.document.kernels_schema import (
    Coverage,
    Sampled,
    SampledKernel,
    SampledLayer,
    SampledOperator,
    SampledThread,
)
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import PassRecord
from hwprof.run.schema import empty

UNKNOWN: Final = "[unknown]"
REFERENCE_GHZ: Final = "reference_ghz"
"""Where a collector's detail says in which cycles the machine's time is counted."""

LEAST_SHARE: Final = 0.01
"""Kernels with less of a layer's processor time are not listed; the run's ``samples.parquet`` has all."""

LEAST_SHARE_OF_WHOLE: Final = 0.001

FEW_FOR_BALANCE: Final = 30
"""With fewer samples than that, each thread's part of a layer is known too badly to compare threads."""

WORKS: Final = 0.01
"""From this share of the busiest thread's processor time on, a thread counts as one that works in the inference."""

FEW_IN_ALL: Final = 1000
"""With fewer samples of the inference than that, a share of 5% is known to no better than 1.5 percentage points."""

MEASURED: Final = "measured"
FOLLOWED: Final = "instrumented"


def build(run: RunDirectory, one: SampledPass, counted: Sequence[Found]) -> Sampled:
    """Of the samples of a pass. ``counted``: what passes counted by following the code."""
    inside, detail, number = one.inside, one.detail, len(one.iterations)
    by_layer = sampled_kernels.kernels_by_layer(inside, one.kernels)
    of_whole = sampled_kernels.kernel_table(inside, one.kernels)
    measured = inside["instructions"].sum() > 0 and inside["cycles"].null_count() < inside.height
    same = instrumented.same_code((found.record for found in counted), one.record)
    other = next((found for found in counted if found.record in same), None)
    ghz = _reference_ghz(other.record) if other is not None else None
    told = None
    if other is not None and ghz is not None:
        instructions = other.kernels.filter(pl.col("event").str.ends_with(INSTRUCTIONS))
        told = kernel_cpi.kernel_cpi(inside, by_layer, instructions, number, ghz)
    listed = by_layer.filter(pl.col("share") >= LEAST_SHARE)
    kernels = pl.concat([of_whole.filter(pl.col("share") >= LEAST_SHARE_OF_WHOLE), listed], how="diagonal")
    provenance = MEASURED if measured else FOLLOWED if told is not None else None
    return Sampled(
        name=one.record.name,
        event=str(inside["event"][0]),
        frequency_hz=detail.get("frequency_hz"),
        kernel_sampled=detail.get("kernel"),
        iterations=number,
        threads=one.threads,
        samples=inside.height,
        lost=detail.get("lost", 0),
        throttled=detail.get("throttled", 0),
        threads_missed=detail.get("threads_missed", 0),
        coverage=_coverage(one),
        module_share=_share(inside, pl.col("module").is_not_null()),
        named_share=_share(inside, pl.col("name").is_not_null()),
        wait_share=_share(inside, pl.col("code").eq_missing(sampled_kernels.WAITING_DOMAIN)),
        unknown=_unknown(one),
        cpi_provenance=provenance,
        cpi_meaning=_meaning(provenance, one, other, ghz),
        cpi_missing=None if provenance else _no_cpi(inside),
        mpki_missing=None if inside["llc_misses"].drop_nulls().sum() else _no_mpki(),
        instructions_from=other.record.name if other is not None and told is not None else None,
        reference_ghz=ghz,
        few_samples=FEW,
        few_for_balance=FEW_FOR_BALANCE,
        least_share=LEAST_SHARE,
        least_share_of_whole=LEAST_SHARE_OF_WHOLE,
        notes=_notes(one),
        layers=_layers(run, one),
        kernels=_kernels(kernels, told, number, measured=measured),
    )


def _coverage(one: SampledPass) -> list[Coverage]:
    rows = samples.coverage(one.placed).with_columns(pl.col("cpu_ns") / len(one.iterations))
    return [Coverage(**row) for row in rows.iter_rows(named=True)]


def _share(inside: pl.DataFrame, chosen: pl.Expr) -> float | None:
    return inside.select(chosen.sum() / pl.len()).item() if inside.height else None


def _unknown(one: SampledPass) -> int:
    nowhere = one.kernels.filter(pl.col("library") == UNKNOWN).select(piece="kernel")
    return one.inside.join(nowhere, on="piece", how="semi").height + one.inside["piece"].null_count()


def _reference_ghz(record: PassRecord) -> float | None:
    return next((said.detail[REFERENCE_GHZ] for said in record.collectors if REFERENCE_GHZ in said.detail), None)


def _meaning(provenance: str | None, one: SampledPass, other: Found | None, ghz: float | None) -> str | None:
    if provenance == MEASURED:
        return "cycles / instructions, counted by hardware between two samples of a thread, at the later one"
    if provenance is None or other is None:
        return None
    return (
        f"sampled CPU time x {ghz:.4g} GHz (reference frequency) / instructions of pass {other.record.name}"
        " in the same kernel and layers, all threads"
    )


def _no_cpi(inside: pl.DataFrame) -> Missing:
    if inside["event"][0] == "cpu-clock":
        reason = "samples without counters, and no pass counted the kernels' instructions"
        return Missing("cpi", reason, "hwprof collect --counters perf,instrumented")
    return Missing("cpi", "no instructions counted between samples")


def _no_mpki() -> Missing:
    return Missing("llc_mpki", "no last-level cache misses counted between samples")


def _notes(one: SampledPass) -> list[str]:
    """That these are few, and what brings more."""
    if one.inside.height >= FEW_IN_ALL:
        return []
    frequency_hz = one.detail.get("frequency_hz")
    faster = f"--frequency {4 * frequency_hz + 3}" if frequency_hz else "a higher --frequency"
    return [f"only {one.inside.height} samples, wide intervals. Try: {faster}, or --sample-passes measure"]


def _layers(run: RunDirectory, one: SampledPass) -> list[SampledLayer]:
    number = len(one.iterations)
    by_thread = waiting.threads_by_layer(one.inside)
    switches = run.scan("switches").filter(pl.col("pass") == one.record.name).collect()
    off = waiting.off_cpu(switches, one.spans, one.layers, one.iterations).join(_working(one), on="tid", how="semi")
    together = _together(one, by_thread)
    sums = off.group_by("layer").agg(pl.col("off_ns", "preempted_ns").sum() / number)
    frame = (
        sampled_kernels.layer_table(one.inside)
        .join(together, on="layer", how="left", maintain_order="left")
        .join(sums, on="layer", how="left", maintain_order="left")
        .with_columns(pl.col("off_ns", "preempted_ns").fill_null(0.0))
    )
    threads, operators = _threads(run, one, by_thread, off), _operators(one)
    return [
        SampledLayer(
            path=row["layer"],
            threads=threads.get(row["layer"], []),
            operators=operators.get(row["layer"], []),
            named_share=row["named_share"],
            wait_share=row["wait_share"] if row["samples"] >= FEW_FOR_BALANCE else None,
            efficiency=row["efficiency"] if row["samples"] >= FEW_FOR_BALANCE else None,
            imbalance=row["imbalance"] if row["samples"] >= FEW_FOR_BALANCE else None,
            off_ns=row["off_ns"],
            preempted_ns=row["preempted_ns"],
            **_known(row, number),
        )
        for row in frame.iter_rows(named=True)
    ]


def _working(one: SampledPass) -> pl.DataFrame:
    """The threads (``tid``) that work in the inference: others sleep through it, which is no loss."""
    each = one.inside.group_by("tid").agg(pl.col("cpu_ns").sum())
    return each.filter(pl.col("cpu_ns") >= WORKS * pl.col("cpu_ns").max()).select("tid")


def _together(one: SampledPass, by_thread: pl.DataFrame) -> pl.DataFrame:
    """Efficiency and imbalance by layer."""
    times = attribute(one.spans, empty("counts"), one.layers, one.record).times
    kept = times.filter(pl.col("iteration").is_in(list(one.iterations)) & (pl.col("owner") != WHOLE))
    wall = kept.group_by(layer="owner").agg(pl.col("time_ns").sum())
    if one.threads is None:
        return wall.select("layer", efficiency=pl.lit(None, pl.Float64), imbalance=pl.lit(None, pl.Float64))
    return waiting.parallelism(by_thread, wall, one.threads).select("layer", "efficiency", "imbalance")


def _threads(
    run: RunDirectory, one: SampledPass, by_thread: pl.DataFrame, off: pl.DataFrame
) -> dict[str, list[SampledThread]]:
    known = run.scan("threads").filter(pl.col("pass") == one.record.name).select("tid", "name", "role").collect()
    frame = (
        by_thread.join(off.drop("times", "waited_ns"), on=["layer", "tid"], how="full", coalesce=True)
        .join(known, on="tid", how="left")
        .with_columns(pl.col("samples", "busy_ns", "wait_ns", "off_ns", "preempted_ns").fill_null(0))
        .with_columns(pl.col("busy_ns", "wait_ns", "off_ns", "preempted_ns") / len(one.iterations))
        .sort("layer", "tid")
    )
    found: dict[str, list[SampledThread]] = {}
    for row in frame.iter_rows(named=True):
        found.setdefault(row.pop("layer"), []).append(SampledThread(**row))
    return found


def _operators(one: SampledPass) -> dict[str, list[SampledOperator]]:
    if one.inside["operator"].null_count() == one.inside.height:
        return {}
    rows = sampled_kernels.operators_by_layer(one.inside).filter(pl.col("share") >= LEAST_SHARE)
    found: dict[str, list[SampledOperator]] = {}
    for layer, operator, number, share in rows.select("layer", "operator", "samples", "share").iter_rows():
        found.setdefault(layer, []).append(SampledOperator(operator=operator, samples=number, share=share))
    return found


def _known(row: dict[str, Any], iterations: int) -> dict[str, Any]:
    """The figures of a row that layers and kernels share; none that rests on few samples."""
    enough = row["samples"] >= FEW
    return {
        "samples": row["samples"],
        "cpu_ns": row["cpu_ns"] / iterations,
        "share": row["share"],
        "share_low": row["share_low"],
        "share_high": row["share_high"],
        "cpi": row["cpi"] if enough else None,
        "llc_mpki": row["llc_mpki"] if enough else None,
    }


def _kernels(table: pl.DataFrame, told: pl.DataFrame | None, iterations: int, *, measured: bool) -> list[SampledKernel]:
    """``told``: as ``kernel_cpi`` makes it; its CPI counts where none was measured."""
    keys = ["layer", "name", "library", "domain"]
    frame = table.with_columns(
        pl.col("name").fill_null(instrumented.UNNAMED),
        pl.col("library").fill_null(UNKNOWN),
        pl.col("instructions") / iterations,
    )
    if not measured and told is not None:
        frame = frame.drop("instructions", "cpi").join(
            told, on=keys, how="left", nulls_equal=True, maintain_order="left"
        )
    return [
        SampledKernel(
            layer=row["layer"],
            kernel=row["name"],
            full_name=row["full_name"] if row["full_name"] != row["name"] else None,
            library=row["library"],
            domain=row["domain"] or "other",
            layers=row["layers"],
            pieces=row["pieces"],
            share_of_kernel=row["share_of_kernel"],
            instructions=row["instructions"],
            cpi_low=row.get("cpi_low"),
            cpi_high=row.get("cpi_high"),
            **_known(row, iterations),
        )
        for row in frame.iter_rows(named=True)
    ]
