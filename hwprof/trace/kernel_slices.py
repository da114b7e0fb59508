"""What each thread ran, as slices: consecutive samples of one kernel within one layer, and off-CPU times.

A sample stands for the thread's work since its last one, so its slice ends with it, and begins where the work can have
begun at the earliest: its processor time before, but not before the layer, the thread's last sample, or its coming
back onto a processor.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl

from hwprof.trace.encoder import Events, EventSequence, Numbers
from hwprof.trace.flows import FlowNumbers
from hwprof.trace.packets import EventType

OPENMP: Final = "openmp"
WAITING: Final = "waiting"
OFF_CPU: Final = "off-cpu"
IDLE: Final = (WAITING, OFF_CPU)
"""Categories of slices in which a thread does no work."""

NO_EDGE: Final = np.iinfo(np.int64).min

SLICES: Final = pl.Schema(
    {
        "tid": pl.Int64, "begin_ns": pl.Int64, "end_ns": pl.Int64, "edge": pl.Int64, "layer": pl.Int64,
        "name": pl.String, "category": pl.String, "library": pl.String, "full_name": pl.String, "function": pl.String,
        "samples": pl.Int64, "cpu_ns": pl.Int64, "cycles": pl.Int64, "instructions": pl.Int64, "llc_misses": pl.Int64,
        "flow": pl.UInt64,
    }
)  # fmt: skip
"""``edge``: when the layer around it, or the pause between two layers, began. ``layer``: that layer's span, or null.
``function``: by which it is known why the thread left its processor."""

_IDENTITY: Final = ("tid", "edge", "name", "category")
_TEXTS: Final = ("library", "full_name", "function")
_SUMS: Final = ("samples", "cpu_ns", "cycles", "instructions", "llc_misses")


def edges_of(leaves: pl.DataFrame) -> pl.DataFrame:
    """When leaf layers (``span``, ``begin_ns``, ``end_ns``) and the pauses between them begin: ``edge``, ``layer``."""
    ordered = leaves.sort("begin_ns", "end_ns")
    begins = ordered.select(edge="begin_ns", layer="span")
    ends = ordered.select(edge="end_ns", layer=pl.lit(None, pl.Int64))
    # at one time the layer that begins counts, and not the one that ends
    return pl.concat([ends, begins]).sort("edge", maintain_order=True).unique("edge", keep="last", maintain_order=True)


def slices(samples: pl.DataFrame, switches: pl.DataFrame, edges: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """Rows of ``SLICES``, by thread and time.

    ``samples`` have the columns of ``SLICES`` that say what ran, and ``time_ns``; ``before`` are each thread's last
    slices so far, which come first and may go on.
    """
    sampled = samples.sort("time_ns").join_asof(edges, left_on="time_ns", right_on="edge", strategy="backward")
    ran = sampled.select(
        "tid",
        # after the layer, not with it: the trace processor drops a flow into a slice that is not later than its source
        begin_ns=pl.max_horizontal(pl.col("time_ns") - pl.col("cpu_ns"), pl.col("edge") + 1),
        end_ns="time_ns",
        edge=pl.col("edge").fill_null(NO_EDGE),
        layer="layer",
        name="name",
        category="category",
        library="library",
        full_name="full_name",
        samples=pl.lit(1, pl.Int64),
        **{column: pl.col(column) for column in _SUMS[1:]},
    )
    off = switches.drop_nulls(["out_ns", "in_ns"]).select(
        "tid",
        begin_ns="out_ns",
        end_ns="in_ns",
        edge=pl.lit(NO_EDGE, pl.Int64),
        name=pl.when("preempted")
        .then(pl.lit("off-CPU, preempted"))
        .otherwise(pl.coalesce(pl.lit("off-CPU: ") + pl.col("reason"), pl.lit("off-CPU, blocked"))),
        category=pl.lit(OFF_CPU),
        function="function",
        samples=pl.lit(0, pl.Int64),
    )
    later = pl.concat([_conform(ran), _conform(off)])
    at = pl.when(pl.col("category") == OFF_CPU).then("begin_ns").otherwise("end_ns")
    ordered = later.with_columns(at=at).sort("tid", "at", maintain_order=True).drop("at")
    return _merged(pl.concat([before, ordered]).sort("tid", maintain_order=True))


def _merged(rows: pl.DataFrame) -> pl.DataFrame:
    # a slice that began with its layer may begin after its sample, and ends no earlier
    reached = pl.max_horizontal("begin_ns", "end_ns").cum_max().shift(1).over("tid")
    placed = rows.with_columns(begin_ns=pl.max_horizontal("begin_ns", reached)).with_columns(
        end_ns=pl.max_horizontal("begin_ns", "end_ns")
    )
    same = pl.all_horizontal(pl.col(column).eq_missing(pl.col(column).shift(1)) for column in _IDENTITY)
    follows = pl.col("begin_ns") - pl.col("end_ns").shift(1) <= pl.col("cpu_ns")  # less than a sample is missing
    goes_on = (same & (pl.col("category") != OFF_CPU) & follows).fill_null(False)
    return (
        placed.with_columns(run=(~goes_on).cum_sum())
        .group_by("run", maintain_order=True)
        .agg(
            pl.col("tid", "begin_ns", "edge", "layer", "name", "category", *_TEXTS, "flow").first(),
            pl.col("end_ns").last(),
            *(pl.when(pl.col(sum_).count() > 0).then(pl.col(sum_).sum()).alias(sum_) for sum_ in _SUMS),
        )
        .select(list(SLICES))
    )


def link(found: pl.DataFrame, main_tid: int | None, numbers: FlowNumbers) -> tuple[pl.DataFrame, dict[int, list[int]]]:
    """One flow from each layer to the first slice in which another thread works for it; also by the layer's span."""
    works = pl.col("layer").is_not_null() & ~pl.col("category").is_in(IDLE) & (pl.col("tid") != (main_tid or 0))
    indexed = found.with_row_index("row")
    first = indexed.filter(works).group_by("layer", "tid", maintain_order=True).first().filter(pl.col("flow") == 0)
    given = numbers.take(len(first))
    flows = found["flow"].to_numpy().copy()
    flows[first["row"].to_numpy()] = given
    sources: dict[int, list[int]] = {}
    for layer, flow in zip(first["layer"].to_list(), given.tolist(), strict=True):
        sources.setdefault(layer, []).append(flow)
    return found.with_columns(flow=pl.Series(flows, dtype=pl.UInt64)), sources


def write(sequence: EventSequence, found: pl.DataFrame) -> None:
    """Writes one thread's slices, each with what was sampled in it."""
    is_begin = np.tile([True, False], len(found))

    def spread(values: pl.Series) -> np.ndarray[tuple[int], np.dtype[Any]]:
        """At the begins; none at the ends."""
        result = np.full(2 * len(found), -1, np.float64 if values.dtype.is_float() else np.int64)
        result[::2] = values.fill_null(-1).to_numpy()
        return result

    def numbers(values: Numbers) -> Numbers:
        result = np.zeros(2 * len(found), np.uint32)
        result[::2] = values
        return result

    figures = found.select(
        samples=pl.when(pl.col("samples") > 0).then("samples"),
        cpu_ms=(pl.col("cpu_ns") / 1e6).round(6),
        cpi=pl.when(pl.col("instructions") > 0).then(pl.col("cycles") / pl.col("instructions")),
        llc_misses="llc_misses",
    )
    times = np.empty(2 * len(found), np.int64)
    times[::2], times[1::2] = found["begin_ns"].to_numpy(), found["end_ns"].to_numpy()
    flow = np.zeros(2 * len(found), np.uint64)
    flow[::2] = found["flow"].to_numpy()
    sequence.write(
        Events(
            times,
            np.where(is_begin, np.uint8(EventType.BEGIN), np.uint8(EventType.END)),
            name=numbers(sequence.names(found["name"])),
            category=numbers(sequence.categories(found["category"])),
            annotations={name: numbers(sequence.strings(found[name])) for name in _TEXTS},
            terminating_flow=flow,
            figures={name: spread(figures[name]) for name in figures.columns},
        )
    )


def _conform(frame: pl.DataFrame) -> pl.DataFrame:
    known = [
        (pl.col(name) if name in frame.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in SLICES.items()
    ]
    return frame.select(known).with_columns(pl.col("flow").fill_null(0))
