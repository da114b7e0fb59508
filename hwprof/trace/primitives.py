"""oneDNN's primitives in the trace: slices below the layers, in the iteration in which oneDNN reported them, and what
each layer executes, an annotation of its slices in every pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from hwprof.analysis.attribution import leaf_spans
from hwprof.analysis.primitives import CLOCK, locate
from hwprof.analysis.recursion import outermost_calls
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import PassRecord
from hwprof.trace.nesting import END_OF_TIME
from hwprof.trace.slices import write_columns
from hwprof.trace.tracks import PRIMITIVE, Tracks

Executed = Mapping[str, Sequence[str]]
"""By a layer's path: its primitives, most time first."""

TEXTS = ("implementation", "problem", "data_types", "layouts", "algorithm", "attributes", "propagation")
"""Columns that become annotations of a slice."""


def write_primitives(primitives: pl.DataFrame, record: PassRecord, tracks: Tracks) -> int:
    """Writes a pass's rows of that table, and returns how many have a time."""
    rows = primitives.drop_nulls("begin_ns").select(
        "begin_ns",
        *TEXTS,
        end_ns=pl.col("begin_ns") + pl.col("time_ns"),
        path=pl.concat_str("primitive", "implementation", separator=" "),
        kind="primitive",
        span=pl.col("order").cast(pl.Int64),
    )
    if rows.is_empty():
        return 0
    for placed in tracks.slices(PRIMITIVE, record.main_tid or record.pid or 0).place(rows, END_OF_TIME):
        write_columns(placed, rows, np.empty(0, np.uint64), TEXTS)
    return rows.height


def executed(run: RunDirectory) -> Executed:
    """What layers execute, by the pass in which oneDNN reported; empty where it did in none."""
    layers = run.read("layers")
    for record in run.completed_passes():
        clock = next((clock for clock in record.clocks if clock.name == CLOCK), None)
        primitives = run.of_pass("primitives", record.name)
        if clock is not None and not primitives.is_empty():
            leaves = outermost_calls(leaf_spans(run.of_pass("spans", record.name), layers))
            return _by_layer(locate(primitives, leaves, clock.error_ns))
    return {}


def _by_layer(located: pl.DataFrame) -> dict[str, list[str]]:
    sums = (
        located.drop_nulls("path")
        .group_by("path", "primitive", "implementation")
        .agg(pl.col("time_ns").sum(), executions=pl.len())
        .sort("time_ns", "implementation", descending=[True, False])
    )
    found: dict[str, list[str]] = {}
    for path, primitive, implementation, time_ns, executions in sums.iter_rows():
        times = f" in {executions} executions" if executions > 1 else ""
        found.setdefault(path, []).append(f"{primitive} {implementation}, {time_ns / 1e6:.3g} ms{times}")
    return found
