"""The framework's operators, grouped by name and input shapes: where the trace pass spent its time.

That pass runs slower than the measure pass, so shares are the message; times are given as that pass saw them.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

SCHEMA = {
    "name": pl.String,
    "input_shapes": pl.String,
    "count": pl.Int64,
    "self_ns": pl.Int64,
    "inclusive_ns": pl.Int64,
    "share": pl.Float64,  # of the self time of all operators: adds up to 1
}


def operator_table(spans: pl.DataFrame, iterations: tuple[int, ...]) -> pl.DataFrame:
    """One row a name and input shapes, most self time first, in ``SCHEMA``.

    Self time is an operator's own, without the operators it called on the same thread; inclusive time counts an
    operator that calls itself with the same shapes once. Nesting is found by time.
    """
    calls = (
        spans.filter((pl.col("kind") == "op") & pl.col("iteration").is_in(list(iterations)))
        .with_columns(length_ns=pl.col("end_ns") - pl.col("begin_ns"))
        .sort("pid", "tid", "begin_ns", "length_ns", "span", descending=[False, False, False, True, False])
    )
    if not calls.height:
        return pl.DataFrame(schema=SCHEMA)
    own = pl.DataFrame(list(_self_times(calls)), schema={"self_ns": pl.Int64, "outermost": pl.Boolean}, orient="row")
    return (
        calls.hstack(own)
        .group_by("input_shapes", name="path")
        .agg(
            pl.len().cast(pl.Int64).alias("count"),
            pl.col("self_ns").sum(),
            pl.col("length_ns").filter("outermost").sum().alias("inclusive_ns"),
        )
        .with_columns(share=pl.col("self_ns") / pl.col("self_ns").sum().replace(0, None).cast(pl.Float64))
        .sort("self_ns", "name", "input_shapes", descending=[True, False, False])
        .select(*SCHEMA)
    )


def coverage(spans: pl.DataFrame, iterations: tuple[int, ...]) -> float | None:
    """The share of the iterations' time that lies in operators on the threads that ran the iterations."""
    kept = spans.filter(pl.col("iteration").is_in(list(iterations)))
    whole = kept.filter(pl.col("kind") == "iteration")
    total = int((whole["end_ns"] - whole["begin_ns"]).sum())
    threads = whole.select("pid", "tid").unique()
    operators = kept.filter(pl.col("kind") == "op").join(threads, on=["pid", "tid"], how="semi")
    inside = int(operator_table(operators, iterations)["self_ns"].sum())
    return inside / total if total and operators.height else None


def _self_times(calls: pl.DataFrame) -> Iterator[tuple[int, bool]]:
    """(own time, whether no enclosing operator has the same name and shapes) of each call, in order.

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
    return zip(own, outermost, strict=True)
