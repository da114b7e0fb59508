"""Sampled kernels and threads of several layers together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import polars as pl

from hwprof.analysis.statistics import wilson
from hwprof.report.document.kernels_schema import Sampled, SampledKernel, SampledLayer, SampledThread

KEYS: Final = ("kernel", "library", "domain")


def kernels(
    path: str, layers: Sequence[SampledLayer], by_layer: Sequence[Sequence[SampledKernel]], sampled: Sampled
) -> list[SampledKernel]:
    """The kernels of these layers, ``by_layer``, as those of one that is called ``path``; most processor time first.

    Shares are of the layers' processor time together; cycles an instruction and misses are those of the layers that
    have them.
    """
    rows = [msgspec.to_builtins(kernel) for found in by_layer for kernel in found]
    if len(layers) < 2 or not rows:
        return [kernel for found in by_layer for kernel in found]
    whole_ns = sum(layer.cpu_ns for layer in layers)
    frame = pl.DataFrame(rows, infer_schema_length=None).with_columns(
        pl.col("cpi", "llc_mpki", "instructions", "share_of_kernel").cast(pl.Float64)
    )
    counted = pl.col("instructions").is_not_null()
    sums = frame.group_by(KEYS, maintain_order=True).agg(
        pl.col("full_name").first(),
        pl.col("pieces").max(),
        pl.col("samples", "cpu_ns", "share_of_kernel").sum(),
        instructions=pl.when(counted.any()).then(pl.col("instructions").sum()),
        counted_ns=pl.col("cpu_ns").filter(counted).sum(),
        cycles=_total("cpi"),
        cycles_of=pl.col("instructions").filter(pl.col("cpi").is_not_null()).sum(),
        misses=_total("llc_mpki"),
        misses_of=pl.col("instructions").filter(pl.col("llc_mpki").is_not_null()).sum(),
    )
    share = pl.col("cpu_ns") / whole_ns
    low, high = wilson(share, pl.lit(float(sum(layer.samples for layer in layers))))
    enough = pl.col("samples") >= sampled.few_samples
    found = sums.with_columns(
        share=share,
        share_low=low,
        share_high=high,
        llc_mpki=pl.when(enough & (pl.col("misses_of") > 0)).then(pl.col("misses") / pl.col("misses_of")),
        layers=pl.lit(None, pl.Int64),
        layer=pl.lit(path),
        **_cpi(sampled, enough),
    )
    columns = [field.name for field in msgspec.structs.fields(SampledKernel)]
    ordered = found.sort("cpu_ns", "kernel", descending=[True, False]).select(columns)
    return [SampledKernel(**row) for row in ordered.iter_rows(named=True)]


def threads(layers: Sequence[SampledLayer]) -> list[SampledThread]:
    """The threads of these layers, each with the sum of what it did in them."""
    found: dict[int, SampledThread] = {}
    for thread in (thread for layer in layers for thread in layer.threads):
        known = found.get(thread.tid)
        found[thread.tid] = _added(known, thread) if known is not None else thread
    return [found[tid] for tid in sorted(found)]


def _total(rate: str) -> pl.Expr:
    """Of a rate an instruction, what it is a rate of."""
    return (pl.col(rate) * pl.col("instructions")).sum()


def _cpi(sampled: Sampled, enough: pl.Expr) -> dict[str, pl.Expr]:
    """Measured: over the layers that have it. By time: over those whose instructions were counted, with the interval
    of their processor time in that of the inference."""
    nothing = pl.lit(None, pl.Float64)
    if sampled.reference_ghz is None or sampled.cpi_provenance == "measured":
        cpi = pl.when(enough & (pl.col("cycles_of") > 0)).then(pl.col("cycles") / pl.col("cycles_of"))
        return {"cpi": cpi, "cpi_low": nothing, "cpi_high": nothing}
    known = enough & (pl.col("instructions") > 0) & (pl.col("counted_ns") > 0)
    cpi = pl.when(known).then(pl.col("counted_ns") * sampled.reference_ghz / pl.col("instructions"))
    whole_ns = sum(row.cpu_ns for row in sampled.coverage if row.share is not None)
    share = pl.col("counted_ns") / whole_ns
    low, high = wilson(share, pl.lit(float(sampled.samples)))
    return {"cpi": cpi, "cpi_low": cpi * low / share, "cpi_high": cpi * high / share}


def _added(one: SampledThread, other: SampledThread) -> SampledThread:
    names = ("samples", "busy_ns", "wait_ns", "off_ns", "preempted_ns")
    return msgspec.structs.replace(one, **{name: getattr(one, name) + getattr(other, name) for name in names})
