"""Calls of Python's functions, counted one by one, and what counting them costs."""

from __future__ import annotations

import statistics
from typing import Final, NamedTuple

import polars as pl

from hwprof.analysis.iterations import select
from hwprof.analysis.python_stacks import Looks
from hwprof.run.manifest import PassRecord

SCHEMA: Final = pl.Schema(
    {
        "stage": pl.String(),
        "function": pl.String(),
        "file": pl.String(),  # ~: no Python
        "line": pl.Int32(),
        "origin": pl.String(),  # ``python_stacks.Origin``, or builtin
        "calls": pl.Float64(),  # these four: in one iteration
        "primitive_calls": pl.Float64(),  # those that no call of the same function led to
        "self_ns": pl.Float64(),
        "cumulative_ns": pl.Float64(),
        "share": pl.Float64(),  # self time, of all in the stage
    }
)

BUILTIN: Final = "~"


class Slower(NamedTuple):
    """How much longer the iterations took in which calls were counted: the median, and the least and most."""

    median: float
    least: float
    most: float


def python_calls(rows: pl.DataFrame, whose: Looks, iterations: int) -> pl.DataFrame:
    """Rows of ``python_calls`` of one pass and so many iterations in ``SCHEMA``, most self time first."""
    origin = (
        pl.when(pl.col("by_profiler"))
        .then(pl.lit("profiler"))
        .when(pl.col("file") == BUILTIN)
        .then(pl.lit("builtin"))
        .otherwise(whose.origins(rows["file"]))
    )
    sums = [pl.col(name) / max(iterations, 1) for name in ("calls", "primitive_calls", "self_ns", "cumulative_ns")]
    share = pl.col("self_ns") / pl.col("self_ns").sum().over("stage").replace(0, None)
    return (
        rows.with_columns(*sums, origin=origin)
        .with_columns(share=share)
        .sort("self_ns", "stage", "function", "file", "line", descending=[True, False, False, False, False])
        .select(SCHEMA.names())
        .cast(SCHEMA)
    )


def slower(
    spans: pl.DataFrame, counted: PassRecord, collector: str, main: pl.DataFrame, timed: PassRecord
) -> Slower | None:
    """The iterations that ``counted`` did for the ``collector`` against the median of those that times are from in the
    main pass; ``spans`` and ``main`` are the passes'. None where there are none."""
    alone = [one.index for one in counted.iterations if one.alone_for == collector]
    mine, others = _lengths(spans, alone), _lengths(main, list(select(timed.iterations).timed))
    if not mine or not others:
        return None
    usual = statistics.median(others)
    return Slower(statistics.median(mine) / usual, min(mine) / usual, max(mine) / usual)


def _lengths(spans: pl.DataFrame, iterations: list[int]) -> list[int]:
    """Of those that lasted (ns)."""
    chosen = spans.filter((pl.col("kind") == "iteration") & pl.col("iteration").is_in(iterations))
    lengths: list[int] = (chosen["end_ns"] - chosen["begin_ns"]).to_list()
    return [length for length in lengths if length > 0]
