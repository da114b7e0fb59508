"""The framework's operators, grouped by name and input shapes: where the trace pass spent its time.

That pass runs slower than the measure pass, so shares are the message; times are given as that pass saw them.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hwprof.analysis.nesting import enclosing

SCHEMA = {
    "name": pl.String,
    "input_shapes": pl.String,
    "count": pl.Int64,
    "self_ns": pl.Int64,
    "inclusive_ns": pl.Int64,
    "share": pl.Float64,  # of the self time of all operators: adds up to 1
}


def operator_calls(spans: pl.DataFrame, iterations: tuple[int, ...]) -> pl.DataFrame:
    """The operator spans of these iterations with three more columns; nesting is found by time.

    ``length_ns``; ``self_ns``: without the operators that it called on the same thread; ``outermost``: no operator
    around it has the same name and shapes.
    """
    calls = (
        spans.filter((pl.col("kind") == "op") & pl.col("iteration").is_in(list(iterations)))
        .with_columns(length_ns=pl.col("end_ns") - pl.col("begin_ns"))
        .sort("pid", "tid", "begin_ns", "length_ns", "span", descending=[False, False, False, True, False])
    )
    own, outermost = _self_times(calls)
    return calls.with_columns(
        pl.Series("self_ns", own, dtype=pl.Int64), pl.Series("outermost", outermost, dtype=pl.Boolean)
    )


def operator_table(calls: pl.DataFrame) -> pl.DataFrame:
    """One row a name and input shapes, most self time first, in ``SCHEMA``; ``calls`` as ``operator_calls`` makes them.

    Inclusive time counts an operator that calls itself with the same shapes once.
    """
    return (
        calls.group_by("input_shapes", name="path")
        .agg(
            pl.len().cast(pl.Int64).alias("count"),
            pl.col("self_ns").sum(),
            pl.col("length_ns").filter("outermost").sum().alias("inclusive_ns"),
        )
        .with_columns(share=pl.col("self_ns") / pl.col("self_ns").sum().replace(0, None).cast(pl.Float64))
        .sort("self_ns", "name", "input_shapes", descending=[True, False, False])
        .select(*SCHEMA)
    )


def coverage(calls: pl.DataFrame, spans: pl.DataFrame, iterations: tuple[int, ...]) -> float | None:
    """The share of the iterations' time that lies in operators on the threads that ran the iterations."""
    whole = spans.filter((pl.col("kind") == "iteration") & pl.col("iteration").is_in(list(iterations)))
    total = int((whole["end_ns"] - whole["begin_ns"]).sum())
    inside = calls.join(whole.select("pid", "tid").unique(), on=["pid", "tid"], how="semi")
    return int(inside["self_ns"].sum()) / total if total and inside.height else None


def _self_times(calls: pl.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Own times, and whether no enclosing operator has the same name and shapes, of the calls in order.

    A call that outlasts the one around it (clocks are converted) takes only its part inside from it.
    """
    begins, ends = calls["begin_ns"].to_numpy(), calls["end_ns"].to_numpy()
    threads = calls.select(pl.struct("pid", "tid").rle_id())["pid"].to_numpy() if calls.height else begins
    around = enclosing(begins, ends, threads)
    own = ends - begins
    inner = np.flatnonzero(around >= 0)
    np.subtract.at(own, around[inner], np.minimum(ends[inner], ends[around[inner]]) - begins[inner])
    keys = calls.select(pl.struct("path", "input_shapes").rank("dense"))["path"].to_numpy() if calls.height else begins
    outermost = np.ones(len(own), dtype=np.bool_)
    ancestor = around.copy()
    while (known := np.flatnonzero(ancestor >= 0)).size:
        outermost[known] &= keys[known] != keys[ancestor[known]]
        ancestor[known] = around[ancestor[known]]
    return own, outermost
