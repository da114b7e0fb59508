"""Cycles per instruction of kernels where nothing counts cycles: from the processor time that samples found in a kernel
and the instructions that a pass of the same work counted in it.

Both are sums over all threads. What lies between leaf layers is left out: there each pass does work of its own
(profilers' hooks, reading counters). So is the OpenMP runtime, which waits longer in the one pass than in the other.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from hwprof.analysis.instrumented import UNNAMED
from hwprof.analysis.owners import is_rest
from hwprof.analysis.sampled_kernels import WAITING_DOMAIN, whole
from hwprof.analysis.samples import FEW_SAMPLES
from hwprof.analysis.statistics import wilson

KEYS: Final = ("name", "library", "domain")
"""What tells kernels apart in different processes."""


def kernel_cpi(
    sampled: pl.DataFrame, by_layer: pl.DataFrame, instructions: pl.DataFrame, iterations: int, reference_ghz: float
) -> pl.DataFrame:
    """One row a leaf layer and kernel, and one a kernel (``layer`` is null) over all of these layers: ``layer``,
    ``KEYS``, ``instructions`` (of an iteration), ``cpi``, ``cpi_low``, ``cpi_high``.

    ``sampled`` and ``by_layer``: as ``sampled_kernels`` makes them, of so many ``iterations``. ``instructions``: the
    rows of ``instrumented.kernels`` with that event. Cycles are those of the reference frequency. The interval is the
    samples' alone, 95%. Null: fewer than ``FEW_SAMPLES`` samples.
    """
    leaf = pl.col("layer").is_not_null() & ~is_rest(pl.col("layer").cast(pl.String))
    counted = instructions.filter(leaf & (pl.col("domain") != WAITING_DOMAIN)).select(
        "layer", "library", "domain", name="kernel", instructions="value"
    )
    times = by_layer.select("layer", "library", "domain", "samples", "cpu_ns", name=pl.col("name").fill_null(UNNAMED))
    both = counted.join(times, on=["layer", *KEYS], how="left")
    # of a kernel's layers also those where it was sampled and not counted, or the other way round
    everywhere = times.join(counted.select("layer").unique(), on="layer", how="semi")
    sums = everywhere.group_by(KEYS).agg(pl.col("samples", "cpu_ns").sum())
    together = counted.group_by(KEYS).agg(pl.col("instructions").sum()).join(sums, on=KEYS, how="left")
    rows = pl.concat([both, together.with_columns(layer=pl.lit(None, pl.String))], how="diagonal")
    whole_ns, draws = whole(sampled)
    share = pl.col("cpu_ns") / whole_ns
    low, high = wilson(share, pl.lit(draws))
    cpi = pl.col("cpu_ns") * (reference_ghz / iterations) / pl.col("instructions")
    enough = (pl.col("samples") >= FEW_SAMPLES) & (pl.col("instructions") > 0)
    return rows.select(
        "layer",
        *KEYS,
        "instructions",
        *(
            pl.when(enough).then(value).alias(name)
            for name, value in (("cpi", cpi), ("cpi_low", cpi * low / share), ("cpi_high", cpi * high / share))
        ),
    )
