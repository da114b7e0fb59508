"""CPU time at work in leaf layers of a sampled pass, without the work that this pass does of its own in them.

The recorder of the framework's operators works inside of layers, on the thread that calls them, and in functions that
the model calls too (allocations, clock reads): no sample tells whose work it met. But the calling thread's CPU time is
counted at the layers' edges, in the sampled pass and in the measure pass, in which no operators are recorded. What the
sampled pass has more of, is its own: ``surplus_ns``. A layer's work is at most what the measure pass took.

Samples tell which part of a thread's time is work: not waiting in the OpenMP runtime, and not the kernel's. Layers with
few are put together: the smaller of two figures is too small where chance made one of them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import polars as pl

from hwprof.analysis.attribution import Attribution
from hwprof.analysis.core_clock import ENDS
from hwprof.analysis.cpu_time import TASK_CLOCK
from hwprof.analysis.sampled_kernels import WAITING_DOMAIN, whole
from hwprof.analysis.samples import FEW_SAMPLES
from hwprof.analysis.statistics import wilson

NOT_WORK: Final = (WAITING_DOMAIN, "kernel")
"""Domains whose time is not that of counted instructions: waiting, and the operating system's kernel."""

CELL: Final = pl.when(pl.col("samples") >= FEW_SAMPLES).then("layer")
"""Which layers are put together: those with few samples, whose cell is null."""

CELLS_SCHEMA: Final = pl.Schema(
    {
        "layer": pl.String,
        "samples": pl.Int64,
        "called_ns": pl.Float64,
        "called_work_ns": pl.Float64,
        "draws": pl.Float64,
        "others_work_ns": pl.Float64,
        "counted_ns": pl.Float64,
        "undisturbed_ns": pl.Float64,
        "undisturbed_error_ns": pl.Float64,
    }
)


@dataclass(frozen=True)
class CallersTime:
    """CPU time of an iteration on the threads that call layers, by ``layer``, in ns: ``counted_ns`` in the sampled
    pass, ``undisturbed_ns`` (± ``undisturbed_error_ns``: half the range of nine iterations in ten) in the one that
    records no operators. Null where nobody counted it."""

    tids: Collection[int]
    frame: pl.DataFrame


def callers_time(
    tids: Collection[int], sampled: Attribution, undisturbed: Attribution | None, iterations: Collection[int]
) -> CallersTime:
    """From the counts of the sampled pass and of the measure pass (None: the sampled pass does no work of its own).
    Where the latter counted no CPU time, its elapsed time is the most that it can have taken.

    Of the sampled pass they count if they are of the very ``iterations`` that were sampled, and their mean, as samples'
    are sums: how long threads wait differs from one to the next, and with it the share at work.
    """
    same = set(sampled.iterations.counted) == set(iterations)
    own = _counted(sampled)
    frame = (
        (own if same else own.clear())
        .group_by("layer")
        .agg(counted_ns=pl.col("cpu_ns").sum() / max(len(iterations), 1))
    )
    if undisturbed is None:
        nothing = {name: pl.lit(None, pl.Float64) for name in ("undisturbed_ns", "undisturbed_error_ns")}
        return CallersTime(tids, frame.with_columns(**nothing))
    rows = _counted(undisturbed)
    if rows.is_empty():
        timed = undisturbed.times.filter(pl.col("iteration").is_in(list(undisturbed.iterations.timed)))
        rows = timed.select(layer="owner", cpu_ns="time_ns")
    most = _of_iterations(rows, "undisturbed_ns")
    return CallersTime(tids, frame.join(most, on="layer", how="full", coalesce=True))


def _counted(attribution: Attribution) -> pl.DataFrame:
    rows = attribution.counts.filter(pl.col("event") == TASK_CLOCK)
    return rows.select(layer="owner", cpu_ns="scaled_main")


def _of_iterations(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    low, high = (pl.col("cpu_ns").quantile(end, "linear") for end in ENDS)
    error = name.replace("_ns", "_error_ns")
    return rows.group_by("layer").agg(pl.col("cpu_ns").median().alias(name), ((high - low) / 2).alias(error))


def by_layer(sampled: pl.DataFrame, layers: pl.DataFrame, callers: CallersTime, iterations: int) -> pl.DataFrame:
    """One row each of ``layers``, in ``CELLS_SCHEMA``; times are of one iteration: what samples found on the
    threads that call it (``called_ns``, of these at work ``called_work_ns``, worth so many equal ``draws``) and at work
    on others, and what was counted. ``samples``: those at work."""
    called, works = pl.col("tid").is_in(list(callers.tids)), ~pl.col("code").is_in(NOT_WORK).fill_null(False)
    cpu_ns = pl.col("cpu_ns").cast(pl.Float64)
    own = cpu_ns.filter(called)
    found = sampled.group_by(pl.col("layer").cast(pl.String)).agg(
        samples=works.sum().cast(pl.Int64),
        called_ns=own.sum() / iterations,
        called_work_ns=cpu_ns.filter(called & works).sum() / iterations,
        draws=own.sum() ** 2 / (own**2).sum(),
        others_work_ns=cpu_ns.filter(~called & works).sum() / iterations,
    )
    figures = [name for name in found.columns if name != "layer"]
    rows = layers.select("layer").join(found, on="layer", how="left").with_columns(pl.col(figures).fill_null(0))
    return rows.join(callers.frame, on="layer", how="left").select(CELLS_SCHEMA.names()).cast(CELLS_SCHEMA)


def in_cells(layers: pl.DataFrame, groups: list[str]) -> pl.DataFrame:
    """The rows of ``by_layer``, those with few samples put together within their group, with ``work_ns`` of an
    iteration, ``below_ns`` and ``above_ns`` (how far its 95% interval reaches) and ``surplus_ns``."""
    sums = [name for name in CELLS_SCHEMA if name not in ("layer", "undisturbed_ns", "counted_ns")]
    counted = pl.coalesce("counted_ns", "called_ns")
    known = {
        "counted_ns": pl.when(pl.col("counted_ns").is_not_null().any()).then(counted.sum()),
        # a layer that the other pass did not call took what it takes here
        "undisturbed_ns": pl.when(pl.col("undisturbed_ns").is_not_null().any()).then(
            pl.coalesce("undisturbed_ns", counted).sum()
        ),
    }
    cells = layers.group_by(*groups, CELL.alias("cell")).agg(pl.col(sums).sum(), **known)
    share = pl.col("called_work_ns") / pl.col("called_ns").replace(0.0, None)
    low, high = wilson(share, pl.col("draws"))
    # where nothing counted the calling thread's time, it is known to no better than its samples
    unsure = pl.col("counted_ns").is_null()
    scale = pl.coalesce("counted_ns", "called_ns").fill_null(0.0)
    most, error = pl.col("undisturbed_ns").fill_null(float("inf")), pl.col("undisturbed_error_ns").fill_null(0.0)
    cells = cells.with_columns(
        found_ns=(share * scale).fill_null(0.0),
        low_ns=(low * scale).fill_null(0.0),
        high_ns=(high * scale).fill_null(0.0),
        most_ns=most,
        error_ns=error,
        sampled_ns=pl.col("others_work_ns") + pl.when(unsure).then("called_work_ns").otherwise(0.0),
    )
    work = pl.min_horizontal("found_ns", "most_ns")
    more = pl.col("low_ns") > pl.col("most_ns") + pl.col("error_ns")  # and not by chance
    below = work - pl.min_horizontal("low_ns", pl.col("most_ns") - pl.col("error_ns"))
    above = pl.when(more).then("error_ns").otherwise(pl.col("high_ns") - work)
    return cells.with_columns(
        work_ns=work + pl.col("others_work_ns"),
        below_ns=pl.when(unsure).then(0.0).otherwise(below),
        above_ns=pl.when(unsure).then(0.0).otherwise(above),
        surplus_ns=pl.when(more).then(pl.col("found_ns") - pl.col("most_ns")).otherwise(0.0),
    )


def summed(cells: pl.DataFrame, groups: list[str], sampled: pl.DataFrame, iterations: int) -> pl.DataFrame:
    """Of each group (none: of all) ``samples``, ``work_ns``, and the ends ``low`` and ``high`` of its 95% interval,
    relative to it. ``cells``: as ``in_cells`` makes them."""
    sums = (
        pl.col("samples", "work_ns", "sampled_ns").sum(),
        *((pl.col(name) ** 2).sum().sqrt() for name in ("below_ns", "above_ns")),
    )
    found = cells.group_by(groups).agg(*sums) if groups else cells.select(*sums)
    whole_ns, draws = whole(sampled)
    # the time of threads that nobody counted apart is a share of all that was sampled
    share = (pl.col("sampled_ns") * iterations / whole_ns).clip(0.0, 1.0)
    low, high = ((end - share).abs() * whole_ns / iterations for end in wilson(share, pl.lit(draws)))
    there = pl.col("sampled_ns") > 0
    below = (pl.col("below_ns") ** 2 + pl.when(there).then(low**2).otherwise(0.0)).sqrt()
    above = (pl.col("above_ns") ** 2 + pl.when(there).then(high**2).otherwise(0.0)).sqrt()
    work = pl.col("work_ns").replace(0.0, None)
    return found.select(*groups, "samples", "work_ns", low=1 - below / work, high=1 + above / work)
