"""What one instrumented pass counted of its kernels: millions of rows, of which a report needs few. They are summed
some kernels at a time, so that no more than a part of them is ever in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from typing import Final

import polars as pl

from hwprof.analysis import instrumented
from hwprof.analysis.attribution import Attribution
from hwprof.analysis.instrumented import KERNEL_KEYS

ROWS: Final = 400_000
"""Of ``kernel_counts`` that are summed at a time: with what is made of them some 100 MB."""

NAMES: Final = [key for key in KERNEL_KEYS if key != "layer"]
"""What tells kernels apart in one layer."""


class KernelCounts:
    """Of one pass: ``spans``, ``rows`` (of ``kernel_counts``) and ``names`` (of ``kernels``) are its own, ``modules``
    the run's layers; ``counted`` what its counts come to, ``done``: only these layers, where others were cut short."""

    def __init__(
        self,
        spans: pl.DataFrame,
        rows: pl.LazyFrame,
        names: pl.DataFrame,
        modules: pl.DataFrame,
        counted: Attribution,
        done: Collection[str] | None,
    ) -> None:
        self._spans, self._rows, self._names = spans, rows, names
        self._modules, self._counted, self._done = modules, counted, done

    @cached_property
    def events(self) -> frozenset[str]:
        """Those of which some kernel has a row."""
        return frozenset(self._rows.select("event").unique().collect(engine="streaming")["event"])

    def of_event(self, name: str | None) -> pl.DataFrame:
        """What every kernel has of one event, as ``instrumented.kernels`` tells it; no rows of None."""
        which = pl.col("event") == name if name is not None else pl.lit(False)
        return self._summed(which).drop("event", "provenance")

    def parts(self, wanted: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """What the ``wanted`` kernels (``NAMES``) have of all events, in all layers, as ``instrumented.kernels`` tells
        it, as texts and without shares; some kernels in each part."""
        known = self._numbered.join(wanted.select(NAMES).unique(), on=NAMES, how="semi")
        rows = known.group_by(NAMES).agg(pl.col("rows").sum()).sort("rows", *NAMES)
        part_of = rows.with_columns(part=(pl.col("rows").cum_sum() - pl.col("rows")) // ROWS).drop("rows")
        for part in known.join(part_of, on=NAMES).sort("part", "number").partition_by("part", maintain_order=True):
            which = pl.col("kernel").is_in(part["number"].implode())
            yield instrumented.as_text(self._summed(which).drop("share"))

    def _summed(self, which: pl.Expr) -> pl.DataFrame:
        rows = self._rows.filter(which)
        return instrumented.kernels(self._spans, rows, self._names, self._modules, self._counted, self._done)

    @cached_property
    def _numbered(self) -> pl.DataFrame:
        """Of every kernel that was counted its ``number`` in the tables, ``NAMES`` and how many ``rows`` it has."""
        numbers = self._rows.group_by("kernel").agg(rows=pl.len().cast(pl.Int64)).collect(engine="streaming")
        named = instrumented.with_names(numbers, self._names.select("kernel", *instrumented.UNKNOWN))
        return named.rename({"kernel": "number", "name": "kernel"})
