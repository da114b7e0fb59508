"""Which lines of Python led to which kernels: samples of the processor, by the stacks that ``sampled_stacks`` tells.

A line is the innermost one on the stack that is the pipeline's: those of ``nn.Module.__call__``, of
``torch/nn/modules/conv.py`` and of hwprof's own hooks are on every stack, and say nothing of who led there.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import polars as pl

from hwprof.analysis.instrumented import UNNAMED
from hwprof.analysis.python_stacks import Origin
from hwprof.analysis.statistics import wilson
from hwprof.analysis.waiting import causes
from hwprof.run.schema import UNKNOWN_LIBRARY

LINES: Final = pl.Schema(
    {
        "file": pl.String,  # null, as function and line: no stack is known, or none of its lines is the pipeline's
        "line": pl.Int32,
        "function": pl.String,
        "kernel": pl.String,  # null: all that the line led to; else one of the kernels below it
        "library": pl.String,
        "samples": pl.Int64,
        "cpu_ns": pl.Float64,  # in one iteration, over all threads, without waiting
        "share": pl.Float64,  # of the inference's processor time
        "share_low": pl.Float64,  # its 95% interval; null of kernels
        "share_high": pl.Float64,
        "share_of_line": pl.Float64,
    }
)

_PLACE: Final = ("file", "line", "function")


def lines_of(stacks: pl.DataFrame) -> pl.DataFrame:
    """Of each of the ``python_stacks.STACKS`` its line: ``stack``, ``file``, ``line``, ``function``."""
    own = stacks.select((pl.col("line") > 0) & (pl.col("origin") == Origin.PIPELINE)).to_series().to_list()
    found: list[int | None] = []
    for number, (parent, is_own) in enumerate(zip(stacks["parent"].to_list(), own, strict=True)):
        found.append(number if is_own else None if parent is None else found[parent])
    places = stacks.select("stack", *_PLACE)
    numbered = pl.DataFrame({"stack": stacks["stack"], "of": pl.Series(found, dtype=pl.Int32)})
    return numbered.join(places, left_on="of", right_on="stack", how="left", maintain_order="left").drop("of")


class Met(NamedTuple):
    """Which stack each sample was met with, and how that is known."""

    stacks: pl.Series  # null: not known
    by_time: pl.Series  # false: by the call that it fell into, which can have no other
    draws: float | None  # what the looks that it goes by then are worth; None: nobody says how many there are


def lines(inside: pl.DataFrame, kernels: pl.DataFrame, stacks: pl.DataFrame, met: Met, iterations: int) -> pl.DataFrame:
    """A row a line, and one a line and kernel, in ``LINES``, most processor time first. ``inside``: samples as
    ``sampled_kernels.sampled`` makes them, of ``iterations``; ``kernels``: the pass's; ``stacks``: as
    ``python_stacks.STACKS``; ``met``: of each sample.

    A share p of which p' goes by time varies by p(1 - p) / samples + p'(1 - p') / looks.
    """
    known = lines_of(stacks)
    placed = inside.select("code_range", "kernel", "code", "name", "cpu_ns").with_columns(
        stack=met.stacks, by_time_ns=pl.col("cpu_ns") * met.by_time
    )
    sums = (pl.col("samples", "cpu_ns", "by_time_ns", "squares").sum(),)
    cells = (
        placed.join(known, on="stack", how="left")
        .with_columns(samples=pl.lit(1, pl.Int64), squares=pl.col("cpu_ns").cast(pl.Float64) ** 2)
        .group_by(*_PLACE, "kernel", "code", "name")
        .agg(*sums, pl.col("code_range").first())
    )
    whole_ns = float(cells["cpu_ns"].sum())
    draws = whole_ns**2 / (float(cells["squares"].sum()) or 1.0)
    work = cells.filter(pl.Series(causes(cells), dtype=pl.String).is_null())
    named = work.join(kernels.select("library", code_range="kernel"), on="code_range", how="left")
    whole = named.group_by(_PLACE).agg(*sums, kernel=pl.lit(None, pl.String), library=pl.lit(None, pl.String))
    below = named.rename({"kernel": "number", "name": "kernel"}).group_by(*_PLACE, "kernel", "library").agg(*sums)
    below = below.with_columns(pl.col("kernel").fill_null(UNNAMED), pl.col("library").fill_null(UNKNOWN_LIBRARY))
    of_line = pl.col("cpu_ns").filter(pl.col("kernel").is_null()).sum().over(_PLACE).replace(0, None)
    rows = pl.concat([whole.select(below.columns), below]).with_columns(
        share=pl.col("cpu_ns") / (whole_ns or None),
        by_time=pl.col("by_time_ns") / (whole_ns or None),
        share_of_line=pl.col("cpu_ns") / of_line,
        of_line=of_line,
    )
    low, high = _interval(draws, met.draws)
    rows = rows.with_columns(share_low=low, share_high=high)
    return (
        rows.sort(
            "of_line", *_PLACE, pl.col("kernel").is_not_null(), "cpu_ns", "kernel", "library",
            descending=[True, False, False, False, False, True, False, False],
            nulls_last=True,
        )
        .with_columns(pl.col("cpu_ns") / max(iterations, 1))
        .select(LINES.names())
        .cast(LINES)
    )  # fmt: skip


def _interval(draws: float, looks: float | None) -> tuple[pl.Expr, pl.Expr]:
    """Of each line's ``share``, of which ``by_time`` goes by looks; as many equal samples and looks as there are."""
    share, by_time = pl.col("share"), pl.col("by_time")
    spread = (share * (1 - share)).replace(0, None)
    more = by_time * (1 - by_time) / spread / pl.lit(looks, pl.Float64)
    trials = 1 / (1 / draws + pl.when(by_time > 0).then(more.fill_null(0)).otherwise(0)) if draws else pl.lit(None)
    of_line = pl.col("kernel").is_null() & ((by_time == 0) | pl.lit(looks is not None))
    low, high = wilson(share, trials)
    return pl.when(of_line).then(low), pl.when(of_line).then(high)
