"""Which lines of Python led to which kernels: samples of the processor, by the stacks that ``sampled_stacks`` tells.

A line is the innermost one on the stack that is the pipeline's: those of ``nn.Module.__call__``, of
``torch/nn/modules/conv.py`` and of hwprof's own hooks are on every stack, and say nothing of who led there.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from hwprof.analysis.instrumented import UNNAMED
from hwprof.analysis.python_stacks import Origin
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


def lines(
    inside: pl.DataFrame, kernels: pl.DataFrame, stacks: pl.DataFrame, met: pl.Series, iterations: int
) -> pl.DataFrame:
    """A row a line, and one a line and kernel, in ``LINES``, most processor time first. ``inside``: samples as
    ``sampled_kernels.sampled`` makes them, of ``iterations``; ``kernels``: the pass's; ``stacks``: as
    ``python_stacks.STACKS``; ``met``: of each sample its stack."""
    known = lines_of(stacks)
    placed = inside.select("code_range", "kernel", "code", "name", "cpu_ns").with_columns(stack=met)
    cells = (
        placed.join(known, on="stack", how="left")
        .group_by(*_PLACE, "kernel", "code", "name")
        .agg(pl.len().cast(pl.Int64).alias("samples"), pl.col("cpu_ns").sum(), pl.col("code_range").first())
    )
    whole_ns = cells["cpu_ns"].sum()
    work = cells.filter(pl.Series(causes(cells), dtype=pl.String).is_null())
    named = work.join(kernels.select("library", code_range="kernel"), on="code_range", how="left")
    sums = (pl.col("samples", "cpu_ns").sum(),)
    whole = named.group_by(_PLACE).agg(*sums, kernel=pl.lit(None, pl.String), library=pl.lit(None, pl.String))
    below = named.rename({"kernel": "number", "name": "kernel"}).group_by(*_PLACE, "kernel", "library").agg(*sums)
    below = below.with_columns(pl.col("kernel").fill_null(UNNAMED), pl.col("library").fill_null(UNKNOWN_LIBRARY))
    of_line = pl.col("cpu_ns").filter(pl.col("kernel").is_null()).sum().over(_PLACE).replace(0, None)
    rows = pl.concat([whole.select(below.columns), below]).with_columns(
        share=pl.col("cpu_ns") / (whole_ns or None), share_of_line=pl.col("cpu_ns") / of_line, of_line=of_line
    )
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
