"""Layers that some iterations call more often than others: figures of one iteration do not belong to those of another.

Every iteration after warm-up tells of it, disturbed ones and those of an instrumented pass as well: where only short
iterations are left, the work looks the same in all of them.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from hwprof.analysis.large_tables import numbered
from hwprof.analysis.owners import WHOLE, is_leaf

SCHEMA: Final = pl.Schema({"owner": pl.String, "caller": pl.String, "iteration": pl.Int32, "calls": pl.Int64})


def none() -> pl.DataFrame:
    """Where nothing was called."""
    return pl.DataFrame(schema=SCHEMA)


def calls(modules: pl.DataFrame, iterations: pl.Series) -> pl.DataFrame:
    """How often each owner was called in each iteration, and by which: in ``SCHEMA``, with a row of the whole for each
    of ``iterations``. ``modules``: the spans with their ``owner``."""
    modules = numbered(modules.select("span", "parent", "iteration", "owner", "call"), "owner")
    owners = modules.select(parent="span", caller="owner")
    # Of a call in several parts the first one counts: see ``attribution.number_of_calls``.
    first = modules.filter(pl.col("call").is_null() | pl.struct("owner", "iteration", "call").is_first_distinct())
    each = first.join(owners, on="parent", how="left").group_by("owner", "caller", "iteration")
    wholes = pl.DataFrame({"iteration": iterations}).with_columns(owner=pl.lit(WHOLE), caller=None, calls=1)
    found = each.agg(calls=pl.len()).select(SCHEMA.names()).cast(SCHEMA)
    return pl.concat([found, wholes.select(SCHEMA.names()).cast(SCHEMA)]).sort("owner", "caller", "iteration")


def of_both(mine: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """The calls of two passes that did the same work; the iterations of the second one have negative numbers."""
    return pl.concat([mine, others.with_columns(iteration=-1 - pl.col("iteration"))])


def layers(called: pl.DataFrame) -> tuple[str, ...]:
    """The layers that iterations call a different number of times, or not at all: the iterations' work differs.
    ``called`` as ``calls`` makes it."""
    numbers = _numbers(called)
    return tuple(numbers.filter(is_leaf(pl.col("owner")) & (_VARIES | ~pl.col("every")))["owner"])


def uneven(called: pl.DataFrame) -> list[str]:
    """The owners whose own work differs between the iterations that have some: those that are called a different number
    of times, who calls others so (or not at all), and the whole."""
    numbers = _numbers(called)
    irregular = numbers.filter(_VARIES | ~pl.col("every"))["owner"]
    if irregular.is_empty():
        return []
    callers = called.filter(pl.col("owner").is_in(irregular.implode()))["caller"].drop_nulls().unique()
    return sorted({*numbers.filter(_VARIES)["owner"], *callers, WHOLE})


_VARIES: Final = pl.col("fewest") != pl.col("most")


def _numbers(called: pl.DataFrame) -> pl.DataFrame:
    """Of each owner the ``fewest`` and the ``most`` calls in an iteration that calls it, and whether ``every`` does."""
    iterations = called.filter(owner=WHOLE)["iteration"].n_unique()
    each = called.filter(pl.col("owner") != WHOLE).group_by("owner", "iteration").agg(pl.col("calls").sum())
    numbers = each.group_by("owner").agg(
        fewest=pl.col("calls").min(), most=pl.col("calls").max(), every=pl.col("iteration").n_unique() == iterations
    )
    return numbers.sort("owner")
