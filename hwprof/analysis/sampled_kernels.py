"""Which code took the processor time: by layer, by kernel, and by kernel in each layer.

Times are the samples' own ``cpu_ns``. A share's interval is the 95% Wilson score interval for as many draws as the
samples are worth: (Σ weight)² / Σ weight² (Kish), which is their number where all stand for the same time. That takes
samples for independent draws; they come at even distances of processor time, which work that repeats in step with them
would betray. What was counted between two samples of a thread goes to where the later one was taken.

A kernel is what has one name in one library: code that a JIT compiler made several times under that name, at several
addresses, is one kernel.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from hwprof.analysis.implementations import is_reorder
from hwprof.analysis.owners import UNATTRIBUTED
from hwprof.analysis.statistics import wilson
from hwprof.analysis.waiting import causes

JIT_DOMAIN: Final = "jit"
KERNEL_DOMAIN: Final = "kernel"
OPENMP_CAUSE: Final = "OpenMP"
"""As ``waiting.causes`` names it."""

WAITING_DOMAIN: Final = "openmp"
"""The OpenMP runtime's code: waiting for other threads, and bringing them to work."""

IDENTITY: Final = ("kernel", "domain", "library", "name", "full_name", "code_ranges")
"""Which kernel: ``kernel`` is the first of the numbers with its name, ``full_name`` that of the code range with the
most samples in one layer, ``code_ranges`` how many of that name were met."""

FIGURES: Final = ("samples", "cpu_ns", "share", "share_low", "share_high", "instructions", "cpi", "llc_mpki")
"""What every table says of a group: its samples and processor time, its share of the table's whole with the interval,
and where they were counted: instructions, cycles an instruction, misses of the last-level cache per 1000 of them."""


def sampled(
    attributed: pl.DataFrame, kernels: pl.DataFrame, iterations: tuple[int, ...], stacks: pl.DataFrame | None = None
) -> pl.DataFrame:
    """The samples of the inference in these iterations, each with its kernel's ``code`` (the domain) and ``name``;
    ``kernel`` is the first of the numbers that have that name, ``code_range`` the sample's own. ``entered_code`` and
    ``entered_name`` are those of the function that was left for the kernel of the operating system; null in others'
    samples, and where nobody looked.

    ``attributed`` as ``samples.attribute_samples`` makes it, ``kernels`` and ``stacks`` that pass's rows.
    """
    named = kernels.select(
        code_range="kernel",
        kernel=pl.col("kernel").min().over("domain", "library", "name"),
        name="name",
        code="domain",
    )
    waits_for = pl.Series(causes(named), dtype=pl.String)  # also in a library that brings an OpenMP runtime of its own
    named = named.with_columns(code=pl.when(waits_for == OPENMP_CAUSE).then(pl.lit(WAITING_DOMAIN)).otherwise("code"))
    inside = attributed.filter(pl.col("iteration").is_in(list(iterations)) & pl.col("layer").is_not_null())
    found = inside.rename({"kernel": "code_range"}).join(named, on="code_range", how="left")
    return _with_entered(found, kernels, stacks)


def _with_entered(found: pl.DataFrame, kernels: pl.DataFrame, stacks: pl.DataFrame | None) -> pl.DataFrame:
    """Of a sample in the operating system's kernel the first of its callers is what ran before: frames of the kernel's
    own are not recorded."""
    if stacks is None:
        unknown = pl.lit(None, pl.String)
        return found.with_columns(entered_code=unknown, entered_name=unknown)
    functions = kernels.select("kernel", entered_code="domain", entered_name="name")
    frames = stacks.select("stack", "kernel").join(functions, on="kernel", how="inner").drop("kernel")
    in_kernel = pl.when(pl.col("code") == KERNEL_DOMAIN)
    joined = found.join(frames, on="stack", how="left", maintain_order="left")
    return joined.with_columns(in_kernel.then(name).alias(name) for name in ("entered_code", "entered_name"))


def whole(sampled: pl.DataFrame) -> tuple[int, float]:
    """The processor time of all samples (ns), and how many equal ones they are worth."""
    cpu_ns, draws = _weights(_cells(sampled), []).row(0)
    return int(cpu_ns), float(draws or 0.0)


def layer_table(sampled: pl.DataFrame) -> pl.DataFrame:
    """One row a layer (and ``UNATTRIBUTED``), most processor time first: ``FIGURES``, ``wait_share`` and
    ``named_share`` of its processor time (waiting in the OpenMP runtime; in code that has a name)."""
    cells = _cells(sampled)
    found = _with_shares(_figures(cells, ["layer"]), _weights(cells, []), [])
    cpu_ns = pl.col("cpu_ns").replace(0, None)
    return _ordered(
        found.with_columns(wait_share=pl.col("wait_ns") / cpu_ns, named_share=pl.col("named_ns") / cpu_ns),
        ["layer", *FIGURES, "wait_share", "named_share"],
    )


def kernel_table(sampled: pl.DataFrame, kernels: pl.DataFrame) -> pl.DataFrame:
    """One row a kernel, most processor time first: ``IDENTITY``, ``FIGURES``, and in how many layers it was met."""
    cells = _cells(sampled)
    found = _with_shares(_figures(cells, ["kernel"]), _weights(cells, []), [])
    return _ordered(_identified(found, kernels), [*IDENTITY, *FIGURES, "layers"])


def waiting_table(sampled: pl.DataFrame) -> pl.DataFrame:
    """The code that waits, in all (``cause`` is null) and by what it waits for, most processor time first: ``cause``,
    ``samples``, ``cpu_ns``, ``share`` of all processor time with its interval. No rows where none was met."""
    cells = _cells(sampled)
    weights = _weights(cells, [])
    cells = cells.with_columns(cause=pl.Series(causes(cells), dtype=pl.String)).drop_nulls("cause")
    of_all = cells.with_columns(cause=pl.lit(None, pl.String))
    tables = [_with_shares(_figures(rows, ["cause"]), weights, []) for rows in (of_all, cells)]
    shown = [table.sort("cpu_ns", "cause", descending=[True, False]) for table in tables]
    return pl.concat(shown).select("cause", "samples", "cpu_ns", "share", "share_low", "share_high")


def reorder_table(sampled: pl.DataFrame) -> pl.DataFrame | None:
    """Functions that change layouts for oneDNN, in all (``layer`` is null, first) and by layer: ``layer``, ``samples``
    and ``cpu_ns`` of these, ``share`` of the processor time of the whole or of the layer with its interval, and
    ``of_samples`` of whole or layer. None where nobody knows: the code that was made at run time has no names."""
    cells = _cells(sampled)
    made = cells.filter(pl.col("code") == JIT_DOMAIN)
    if made.height and made["name"].null_count() == made.height:
        return None
    reorders = pl.Series([is_reorder(name) for name in cells["name"]], dtype=pl.Boolean)
    none = pl.lit(0, pl.Int64)
    chosen = cells.with_columns(
        of_samples="samples",
        **{name: pl.when(reorders).then(name).otherwise(none) for name in ("samples", "cpu_ns")},
    )
    tables = []
    for groups, rows in (([], chosen.with_columns(layer=pl.lit(None, pl.String))), (["layer"], chosen)):
        sums = rows.group_by("layer").agg(pl.col("samples", "cpu_ns", "of_samples").sum())
        tables.append(_with_shares(sums, _weights(cells, groups), groups).sort("layer"))
    return pl.concat(
        table.select("layer", "samples", "cpu_ns", "share", "share_low", "share_high", "of_samples") for table in tables
    )


def kernels_by_layer(sampled: pl.DataFrame, kernels: pl.DataFrame) -> pl.DataFrame:
    """One row a layer and kernel, most processor time first: ``layer``, ``IDENTITY``, ``FIGURES`` (the share is of the
    layer's processor time) and ``share_of_kernel``, which part of the kernel's processor time this layer has."""
    cells = _cells(sampled)
    found = _with_shares(_figures(cells, ["layer", "kernel"]), _weights(cells, ["layer"]), ["layer"])
    of_kernel = pl.col("cpu_ns") / pl.col("cpu_ns").sum().over("kernel").replace(0, None)
    found = found.with_columns(share_of_kernel=of_kernel)
    return _ordered(_identified(found, kernels), ["layer", *IDENTITY, *FIGURES, "share_of_kernel"])


def widened(table: pl.DataFrame, unsampled_ns: float) -> pl.DataFrame:
    """A table of these with intervals that hold wherever so much further processor time was spent, for which no sample
    stands: in the row's own code, or in none of it. With m = unsampled / (whole + unsampled), of which the row's
    ``share`` is: low · (1 - m) … high · (1 - m) + m."""
    if unsampled_ns <= 0:
        return table
    whole_ns = pl.when(pl.col("share") > 0).then(pl.col("cpu_ns") / pl.col("share"))
    seen = (whole_ns / (whole_ns + unsampled_ns)).fill_null(1.0)
    return table.with_columns(
        share_low=pl.col("share_low") * seen, share_high=(pl.col("share_high") * seen + 1 - seen).clip(0, 1)
    )


def operators_by_layer(sampled: pl.DataFrame) -> pl.DataFrame:
    """One row a layer and operator that ran meanwhile (null: none), most processor time first: ``layer``, ``operator``,
    ``samples``, ``cpu_ns``, ``share`` (of the layer's processor time)."""
    found = sampled.group_by("layer", "operator").agg(pl.len().cast(pl.Int64).alias("samples"), pl.col("cpu_ns").sum())
    share = pl.col("cpu_ns") / pl.col("cpu_ns").sum().over("layer").replace(0, None)
    return found.with_columns(pl.col("layer", "operator").cast(pl.String), share=share).sort(
        "cpu_ns", "layer", "operator", descending=[True, False, False]
    )


def _cells(sampled: pl.DataFrame) -> pl.DataFrame:
    """Sums by layer and code range: far fewer rows than samples, and every table is made of them."""
    counted = pl.col("instructions").is_not_null()
    return (
        sampled.group_by("layer", "code_range")
        .agg(
            pl.col("kernel", "code", "name").first(),
            pl.len().cast(pl.Int64).alias("samples"),
            pl.col("cpu_ns").sum(),
            squares=(pl.col("cpu_ns").cast(pl.Float64) ** 2).sum(),
            cycles=pl.col("cycles").filter(counted).sum(),
            cycles_of=pl.col("instructions").filter(pl.col("cycles").is_not_null()).sum(),
            misses=pl.col("llc_misses").filter(counted).sum(),
            misses_of=pl.col("instructions").filter(pl.col("llc_misses").is_not_null()).sum(),
        )
        .with_columns(pl.col("layer").cast(pl.String))
        .sort("samples", "code_range", descending=[True, False])
    )


def _figures(cells: pl.DataFrame, groups: list[str]) -> pl.DataFrame:
    return (
        cells.group_by(groups, maintain_order=True)
        .agg(
            pl.col("samples", "cpu_ns", "cycles", "misses").sum(),
            pl.col("cycles_of", "misses_of").sum().replace(0, None),
            wait_ns=pl.col("cpu_ns").filter(pl.col("code") == WAITING_DOMAIN).sum(),
            named_ns=pl.col("cpu_ns").filter(pl.col("name").is_not_null()).sum(),
            layers=pl.col("layer").filter(pl.col("layer") != UNATTRIBUTED).n_unique().cast(pl.Int64),
            code_range=pl.col("code_range").first(),
            code_ranges=pl.col("code_range").n_unique().cast(pl.Int64),
        )
        .with_columns(
            cpi=pl.col("cycles") / pl.col("cycles_of"),
            llc_mpki=1000 * pl.col("misses") / pl.col("misses_of"),
            instructions="cycles_of",
        )
    )


def _weights(cells: pl.DataFrame, groups: list[str]) -> pl.DataFrame:
    """Of each group, ``whole_ns`` and how many equal samples it is worth (``draws``)."""
    whole_ns, squares = pl.col("cpu_ns").sum(), pl.col("squares").sum().replace(0, None)
    sums = (whole_ns.alias("whole_ns"), (whole_ns.cast(pl.Float64) ** 2 / squares).alias("draws"))
    return cells.group_by(groups).agg(*sums) if groups else cells.select(*sums)


def _with_shares(figures: pl.DataFrame, weights: pl.DataFrame, groups: list[str]) -> pl.DataFrame:
    joined = figures.join(weights, on=groups) if groups else figures.join(weights, how="cross")
    joined = joined.with_columns(share=pl.col("cpu_ns") / pl.col("whole_ns").replace(0, None))
    low, high = wilson(pl.col("share"), pl.col("draws"))
    return joined.with_columns(share_low=low, share_high=high)


def _identified(figures: pl.DataFrame, kernels: pl.DataFrame) -> pl.DataFrame:
    """The figures with what ``IDENTITY`` names."""
    known = kernels.select("domain", "library", "name", "full_name", code_range="kernel")
    return figures.join(known, on="code_range", how="left")


def _ordered(rows: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    keys = [name for name in ("layer", "kernel") if name in columns]
    descending = [True, *(False for _ in keys)]
    return rows.sort("cpu_ns", *keys, descending=descending).select(columns)
