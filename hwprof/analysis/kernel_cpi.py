"""Cycles per instruction where nothing counts cycles: from the processor time that samples found in code and the
instructions that a pass of the same work counted in it; of kernels, of layers, and of all layers.

Both are sums over all threads: of a layer, over its kernels, so that layers and kernels have one CPI. Time that others
had the processor, and the kernel's (clearing pages), is no such time. What lies between leaf layers is left out: there
each pass does work of its own (profilers' hooks, reading counters). So is the OpenMP runtime, which waits longer in the
one pass than in the other.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from hwprof.analysis.core_clock import Clock
from hwprof.analysis.instrumented import UNNAMED
from hwprof.analysis.owners import is_rest
from hwprof.analysis.sampled_kernels import WAITING_DOMAIN, whole
from hwprof.analysis.samples import FEW_SAMPLES
from hwprof.analysis.statistics import wilson

KEYS: Final = ("name", "library", "domain")
"""What tells kernels apart in different processes."""

NOT_COUNTED: Final = (WAITING_DOMAIN, "kernel")
"""Domains whose time is not that of counted instructions: waiting, and the operating system's kernel."""


def kernel_cpi(
    sampled: pl.DataFrame, by_layer: pl.DataFrame, instructions: pl.DataFrame, iterations: int, clock: Clock
) -> pl.DataFrame:
    """Rows of each leaf layer and kernel, each kernel over all of these layers (``layer`` is null), each layer
    (``KEYS`` are null), and all layers (all are null): ``layer``, ``KEYS``, ``samples``, ``instructions`` and
    ``cycles`` (of an iteration), ``cpi``, ``cpi_low``, ``cpi_high``.

    ``sampled`` and ``by_layer``: as ``sampled_kernels`` makes them, of so many ``iterations``. ``instructions``: the
    rows of ``instrumented.kernels`` with that event. Cycles are those of ``clock``. The interval is the samples', 95%,
    and the clock's. Null: fewer than ``FEW_SAMPLES`` samples.
    """
    leaf = pl.col("layer").is_not_null() & ~is_rest(pl.col("layer").cast(pl.String))
    counted = instructions.filter(leaf & (pl.col("domain") != WAITING_DOMAIN)).select(
        "layer", "library", "domain", name="kernel", instructions="value"
    )
    times = by_layer.select("layer", "library", "domain", "samples", "cpu_ns", name=pl.col("name").fill_null(UNNAMED))
    # of a kernel's layers also those where it was sampled and not counted, or the other way round
    everywhere = times.join(counted.select("layer").unique(), on="layer", how="semi")
    worked = everywhere.filter(~pl.col("domain").is_in(NOT_COUNTED))
    rows = [
        counted.join(times, on=["layer", *KEYS], how="left"),
        _together(counted, everywhere, list(KEYS)),
        _together(counted, worked, ["layer"]),
        counted.select(pl.col("instructions").sum()).join(worked.select(SUMS), how="cross"),
    ]
    whole_ns, draws = whole(sampled)
    share = pl.col("cpu_ns") / whole_ns
    low, high = (end / share for end in wilson(share, pl.lit(draws)))
    cycles = pl.col("cpu_ns") * (clock.ghz / iterations)
    cpi = cycles / pl.col("instructions")
    enough = (pl.col("samples") >= FEW_SAMPLES) & (pl.col("instructions") > 0)
    figures = {"cpi": cpi, "cpi_low": cpi * (1 - _both(1 - low, clock)), "cpi_high": cpi * (1 + _both(high - 1, clock))}
    return pl.concat(rows, how="diagonal").select(
        "layer",
        *KEYS,
        "samples",
        "instructions",
        cycles=cycles,
        **{name: pl.when(enough).then(value) for name, value in figures.items()},
    )


SUMS: Final = pl.col("samples", "cpu_ns").sum()


def _together(counted: pl.DataFrame, times: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    instructions = counted.group_by(keys).agg(pl.col("instructions").sum())
    return instructions.join(times.group_by(keys).agg(SUMS), on=keys, how="left")


def _both(error: pl.Expr, clock: Clock) -> pl.Expr:
    """Relative errors that have nothing to do with each other."""
    return (error**2 + (clock.error or 0.0) ** 2).sqrt()
