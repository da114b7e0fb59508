"""The framework's operators, grouped by name and input shapes: where the trace pass spent its time.

That pass runs slower than the measure pass, so shares are the message; times are given as that pass saw them.
"""

from __future__ import annotations

import polars as pl

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


def _self_times(calls: pl.DataFrame) -> tuple[list[int], list[bool]]:
    """Own times, and whether no enclosing operator has the same name and shapes, of the calls in order.

    A call that outlasts the one around it (clocks are converted) takes only its part inside from it.
    """
    thread: tuple[int, int] | None = None
    stack: list[tuple[int, int, tuple[str, str | None]]] = []  # (row, end_ns, key) of the calls that are open
    own: list[int] = []
    outermost: list[bool] = []
    columns = ("pid", "tid", "path", "input_shapes", "begin_ns", "end_ns")
    for row, (pid, tid, name, shapes, begin, end) in enumerate(calls.select(columns).iter_rows()):
        if thread != (pid, tid):
            thread = (pid, tid)
            stack.clear()
        while stack and stack[-1][1] <= begin:
            stack.pop()
        key = (name, shapes)
        if stack:
            own[stack[-1][0]] -= min(end, stack[-1][1]) - begin
        own.append(end - begin)
        outermost.append(all(key != enclosing for _, _, enclosing in stack))
        stack.append((row, end, key))
    return own, outermost
