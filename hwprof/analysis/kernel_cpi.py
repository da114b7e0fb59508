"""Cycles per instruction where nothing counts cycles: from the processor time that samples found in code and the
instructions that a pass of the same work counted in it; of kernels, of layers, and of all layers.

Both are sums over all threads. Time that others had the processor, and the kernel's (clearing pages), is no such time.
What lies between leaf layers is left out: there each pass does work of its own (profilers' hooks, reading counters). So
is the OpenMP runtime, which waits longer in the one pass than in the other. What the sampled pass does of its own
within leaf layers is left out as ``work_time`` finds it; kernels that it may be in have no CPI, since nothing tells it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Final

import polars as pl

from hwprof.analysis import work_time
from hwprof.analysis.core_clock import Clock
from hwprof.analysis.instrumented import UNNAMED, of_those
from hwprof.analysis.no_cpi import (
    BEYOND,
    BY_THE_CLOCK,
    CLOCK_READS,
    CLOCKED,
    FEW,
    MOST_CPI,
    MOST_ERROR,
    MOST_TRACED,
    OF_KERNEL,
    OTHER_WORK,
    OWN_CODE,
    TRACED,
    UNCOUNTED,
    VARYING,
    WIDE,
)
from hwprof.analysis.owners import is_rest
from hwprof.analysis.sampled_kernels import JIT_DOMAIN, WAITING_DOMAIN, whole
from hwprof.analysis.samples import FEW_SAMPLES
from hwprof.analysis.statistics import wilson
from hwprof.analysis.work_time import NOT_WORK, CallersTime

KEYS: Final = ("name", "library", "domain")
"""What tells kernels apart in different processes."""

ROWS: Final = 400_000
"""That are summed at a time."""

TEXTS: Final = pl.Schema(dict.fromkeys(KEYS, pl.String))


def why_uncounted(rows: pl.DataFrame) -> pl.Expr:
    """Why rows of layers or kernels that no table has lack a CPI; null where they wait."""
    own = is_rest(pl.col("layer").fill_null(""))
    if "domain" not in rows.columns:
        return pl.when(own).then(pl.lit(OWN_CODE)).otherwise(pl.lit(UNCOUNTED))
    of_kernel, waits = (pl.col("domain").eq_missing(pl.lit(name)) for name in ("kernel", WAITING_DOMAIN))
    reasons = pl.when(of_kernel).then(pl.lit(OF_KERNEL)).when(own).then(pl.lit(OWN_CODE)).otherwise(pl.lit(UNCOUNTED))
    return pl.when(~waits).then(reasons)


FIGURES: Final = ("samples", "instructions", "cycles", "cpi", "cpi_low", "cpi_high", "reason")


@dataclass(frozen=True)
class CpiByTime:
    """``sampled`` and ``by_layer``: as ``sampled_kernels`` makes them, of so many ``iterations``. ``instructions``: the
    rows of ``KernelCounts.of_event``. Cycles are those of ``clock``.

    All tables have ``FIGURES``: ``samples`` at work, ``instructions`` and ``cycles`` of an iteration, ``cpi`` with the
    ends of its 95% interval, the samples' and the clock's, and the ``reason`` where it has none.
    """

    sampled: pl.DataFrame
    by_layer: pl.DataFrame
    instructions: pl.DataFrame
    iterations: int
    clock: Clock
    callers: CallersTime
    varying: Collection[str] = ()
    """Layers that iterations of one of the passes call more often than others: counts of the one are not of the other's
    time."""

    def counted_in(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Instructions by ``layer`` (null: the whole) and kernel, of those that are in these rows."""
        wanted = rows.select("layer", "library", "domain", kernel="name")
        found = of_those(self.instructions, wanted).filter(pl.col("domain") != WAITING_DOMAIN)
        return found.select("layer", "library", "domain", name="kernel", instructions="value")

    def _in_leaves(self) -> Iterator[pl.DataFrame]:
        """What is of leaf layers, with numbers for texts: of millions of rows some at a time."""
        working = self._those("domain", pl.col("domain") != WAITING_DOMAIN)
        leaves = self._those("layer", ~is_rest(pl.col("layer")))
        wanted = pl.col("domain").is_in(working.implode()) & pl.col("layer").is_in(leaves.implode())
        for some in chain([self.instructions.clear()], self.instructions.iter_slices(ROWS)):
            yield some.filter(wanted).select("layer", "library", "domain", name="kernel", instructions="value")

    def _by_kernel(self, others: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """By ``KEYS``, with numbers for texts: ``instructions`` in leaf layers but in ``others``, and in these the
        ``other_work`` (of several the first)."""
        of_number = others.with_columns(pl.col("layer").cast(self.instructions.schema["layer"]))
        sums, reasons = [], []
        for some in self._in_leaves():
            marked = some.join(of_number, on="layer", how="left")
            alike = marked.filter(pl.col("other_work").is_null())
            sums.append(alike.group_by(KEYS).agg(pl.col("instructions").sum()))
            reasons.append(marked.drop_nulls("other_work").group_by(KEYS).agg(pl.col("other_work").min()))
        return (
            pl.concat(sums).group_by(KEYS).agg(pl.col("instructions").sum()),
            pl.concat(reasons).group_by(KEYS).agg(pl.col("other_work").min()),
        )

    def _those(self, column: str, condition: pl.Expr) -> pl.Series:
        """A column's texts that meet a condition, as numbers."""
        texts = self.instructions.select(pl.col(column).unique().cast(pl.String))
        return texts.filter(condition).to_series().cast(self.instructions.schema[column])

    @cached_property
    def _leaves(self) -> pl.DataFrame:
        """Their paths."""
        return self._of_leaves.select(pl.col("layer").cast(pl.String))

    @cached_property
    def _of_leaves(self) -> pl.DataFrame:
        """``instructions`` by ``layer`` (as a number), and those of functions that read clocks (``reads``)."""
        clock_reads = self._those("kernel", pl.col("kernel").is_in(CLOCK_READS))
        reads = pl.when(pl.col("name").is_in(clock_reads.implode())).then("instructions").otherwise(0.0)
        parts = [
            some.group_by("layer").agg(pl.col("instructions").sum(), reads=reads.sum()) for some in self._in_leaves()
        ]
        return pl.concat(parts).group_by("layer").agg(pl.col("instructions", "reads").sum())

    @cached_property
    def times(self) -> pl.DataFrame:
        """Samples by layer and kernel in these layers, also of kernels that were not counted there."""
        times = self.by_layer.select(
            "layer", "library", "domain", "samples", "cpu_ns", name=pl.col("name").fill_null(UNNAMED)
        )
        return times.join(self._leaves, on="layer", how="semi").with_columns(work_ns=pl.col("cpu_ns") / self.iterations)

    @cached_property
    def layers(self) -> pl.DataFrame:
        """One row a leaf layer, ``layer`` its path."""
        sums = self._of_leaves.select(
            pl.col("layer").cast(pl.String), "instructions", clocked=pl.col("reads") / pl.col("instructions")
        )
        own = work_time.in_cells(self._worked, ["layer"])
        found = sums.join(work_time.summed(own, ["layer"], self.sampled, self.iterations), on="layer", how="left")
        return self._figures(
            found.with_columns(
                other_work=pl.when(pl.col("layer").is_in(list(self.varying)))
                .then(pl.lit(VARYING))
                .when(pl.col("clocked") >= BY_THE_CLOCK)
                .then(pl.lit(CLOCKED))
            )
        )

    def together(self, owners: pl.DataFrame) -> pl.DataFrame:
        """One row an ``owner`` of several leaf layers: ``owners`` has ``layer`` and ``owner``. Layers that did other
        work in the one pass than in the other are left out."""
        alike = owners.join(self.alike, on="layer", how="inner")
        cells = work_time.in_cells(self._worked.join(alike.select("layer", "owner"), on="layer"), ["owner"])
        sums = alike.group_by("owner").agg(pl.col("instructions").sum())
        found = sums.join(work_time.summed(cells, ["owner"], self.sampled, self.iterations), on="owner", how="left")
        return self._figures(found.with_columns(other_work=pl.lit(None, pl.String)).sort("owner"))

    @cached_property
    def kernels(self) -> pl.DataFrame:
        """One row a leaf layer and kernel (``KEYS``) that was sampled there, and one a kernel over all of these layers
        (``layer`` is null) that did the same work in both passes."""
        others = self.layers.filter(pl.col("reason").is_in(OTHER_WORK)).select("layer", other_work="reason")
        # of a kernel's layers also those where it was sampled and not counted, or the other way round
        times = self.times.join(others, on="layer", how="anti").join(self._surplus, on="layer", how="left")
        traced = pl.when(pl.col("domain") != JIT_DOMAIN).then(pl.min_horizontal("surplus_ns", "work_ns"))
        times = times.with_columns(pl.col("surplus_ns").fill_null(0.0)).with_columns(traced_ns=traced.fill_null(0.0))
        in_cells = times.group_by("cell", *KEYS).agg(
            pl.col("samples", "work_ns").sum(),
            pl.min_horizontal(pl.col("surplus_ns").first(), pl.col("traced_ns").sum()).alias("traced_ns"),
        )
        everywhere = in_cells.group_by(KEYS).agg(pl.col("samples", "work_ns", "traced_ns").sum())
        single = self.counted_in(self.times).join(others, on="layer", how="left")
        single = single.join(times.drop("cpu_ns", "cell", "surplus_ns"), on=["layer", *KEYS], how="left")
        sums, reasons = self._by_kernel(others)
        together = sums.cast(TEXTS).join(everywhere, on=KEYS, how="left")
        known = pl.concat([sums.select(KEYS), reasons.select(KEYS)]).unique()
        elsewhere = known.join(reasons, on=KEYS, how="left", nulls_equal=True).cast(TEXTS)
        few = pl.col("samples").fill_null(0) < FEW_SAMPLES
        together = elsewhere.join(together, on=KEYS, how="left").with_columns(
            other_work=pl.when(few).then("other_work")  # most of it was met in layers that are left out
        )
        rows = pl.concat([single, together], how="diagonal")
        whole_ns, draws = whole(self.sampled)
        share = (pl.col("work_ns") * self.iterations / whole_ns).clip(0.0, 1.0)
        low, high = (end / share for end in wilson(share, pl.lit(draws)))
        return self._figures(rows.with_columns(low=low, high=high), traced=pl.col("traced_ns") / pl.col("work_ns"))

    @cached_property
    def _worked(self) -> pl.DataFrame:
        return work_time.by_layer(self.sampled, self._leaves, self.callers, self.iterations)

    @property
    def alike(self) -> pl.DataFrame:
        """The leaf layers that did the same work in both passes, which sums over layers are of."""
        other = pl.col("reason").is_in(OTHER_WORK)
        return self.layers.filter(other.not_() | pl.col("reason").is_null()).select("layer", "instructions")

    @property
    def _surplus(self) -> pl.DataFrame:
        """Of each layer the ``cell`` that it is in, and the cell's ``surplus_ns`` that must lie in counted kernels."""
        worked = self._worked.with_columns(cell=work_time.CELL)
        cells = work_time.in_cells(self._worked, []).select("cell", "surplus_ns")
        uncounted = (
            self.times.filter(~pl.col("domain").is_in(NOT_WORK))
            .join(self.counted_in(self.times), on=["layer", *KEYS], how="anti")
            .join(worked.select("layer", "cell"), on="layer")
            .group_by("cell")
            .agg(uncounted_ns=pl.col("work_ns").sum())
        )
        left = pl.col("surplus_ns") - pl.col("uncounted_ns").fill_null(0.0)
        known = cells.join(uncounted, on="cell", how="left", nulls_equal=True)
        known = known.select("cell", surplus_ns=pl.max_horizontal(pl.lit(0.0), left))
        return worked.select("layer", "cell").join(known, on="cell", how="left", nulls_equal=True)

    def _figures(self, rows: pl.DataFrame, traced: pl.Expr | None = None) -> pl.DataFrame:
        traced = pl.lit(0.0) if traced is None else traced.fill_null(0.0)
        cycles, error = pl.col("work_ns") * self.clock.ghz, self.clock.error or 0.0
        cpi = cycles / pl.col("instructions")
        below, above = (((end - 1) ** 2 + error**2).sqrt() for end in (pl.col("low"), pl.col("high")))
        reason = (
            pl.when(pl.col("other_work").is_not_null())
            .then("other_work")
            .when(pl.col("samples").fill_null(0) < FEW_SAMPLES)
            .then(pl.lit(FEW))
            .when(pl.col("instructions").fill_null(0) <= 0)
            .then(pl.lit(UNCOUNTED))
            .when(cpi > MOST_CPI)
            .then(pl.lit(BEYOND))
            .when(traced > MOST_TRACED)
            .then(pl.lit(TRACED))
            .when((below + traced + above) / 2 >= MOST_ERROR)
            .then(pl.lit(WIDE))
        )
        figures = {"cpi": cpi, "cpi_low": cpi * (1 - below - traced), "cpi_high": cpi * (1 + above)}
        named = rows.with_columns(cycles=cycles, reason=reason).with_columns(
            pl.when(pl.col("reason").is_null()).then(value).alias(name) for name, value in figures.items()
        )
        keys = [name for name in ("layer", "owner", *KEYS) if name in rows.columns]
        return named.select(*keys, *FIGURES)
