"""The samples of one pass, placed in layers, and what they tell of layers, kernels, threads and operators.

Processor times are those of one iteration, over all threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import polars as pl

from hwprof.analysis import instrumented, kernel_cpi, no_cpi, sampled_kernels, samples, waiting
from hwprof.analysis.attribution import whole_spans
from hwprof.analysis.core_clock import Clock, core_clock
from hwprof.analysis.iterations import select
from hwprof.analysis.kernel_cpi import CpiByTime
from hwprof.analysis.lanes import lanes
from hwprof.analysis.lifetimes import lives
from hwprof.analysis.samples import FEW_SAMPLES
from hwprof.analysis.team import OTHER, role, team
from hwprof.run.details import UNSAMPLED_SHARE, SamplingDetail
from hwprof.run.manifest import PassRecord
from hwprof.run.schema import UNKNOWN_LIBRARY

LEAST_SHARE: Final = 0.01
"""Kernels and operators with less of a layer's processor time are not listed, unless the kernel is one of the whole's;
the run's ``samples.parquet`` has all."""

LEAST_SHARE_OF_WHOLE: Final = 0.001
"""Kernels with less of the inference's processor time are not listed. Those that are, are listed in every layer that
they were met in: a large layer may hold most of a kernel that is a small part of it."""

FEW_FOR_SHARES: Final = 30
"""With fewer samples of a layer than that, no share of its threads' time (waiting, at work) is told."""

FIGURES: Final = ("samples", "cpu_ns", "share", "share_low", "share_high")
CPI: Final = ("cpi", "cpi_low", "cpi_high", "cpi_missing")


@dataclass(frozen=True)
class SampledPass:
    """A pass with its samples: those of the inference in its timed iterations are ``inside``."""

    record: PassRecord
    taken: pl.DataFrame  # the table ``samples``
    spans: pl.DataFrame
    modules: pl.DataFrame  # the table ``layers``
    kernels: pl.DataFrame
    switches: pl.DataFrame
    known_threads: pl.DataFrame  # the table ``threads``
    lives: pl.DataFrame  # as ``lifetimes.lives`` makes it
    clock: Clock | None  # the core's, where it was probed
    iterations: tuple[int, ...]
    placed: pl.DataFrame  # in these iterations, in the inference or not
    inside: pl.DataFrame
    threads: int | None  # that the workload has
    team: frozenset[int]  # threads that work for the calling one, as ``team.team``

    @property
    def detail(self) -> SamplingDetail | None:
        """How the samples were taken."""
        found = (collector.detail_as(SamplingDetail) for collector in self.record.collectors)
        return next((detail for detail in found if detail is not None), None)

    @property
    def elapsed_ns(self) -> int:
        """Of the inferences that the samples are of."""
        wholes, _ = whole_spans(self.spans.filter(pl.col("iteration").is_in(list(self.iterations))))
        return int((wholes["end_ns"] - wholes["begin_ns"]).sum())

    def role(self, tid: int) -> str:
        """A thread's, as ``team.role``."""
        return role(tid, self.record.main_tid, self.team)

    def others_share(self) -> float | None:
        """The share of the inference's processor time that threads took which do not work for the calling one."""
        others = [tid for tid in self.inside["tid"].unique() if self.role(tid) == OTHER]
        cpu_ns = pl.col("cpu_ns")
        share = cpu_ns.filter(pl.col("tid").is_in(others)).sum() / cpu_ns.sum()
        return self.inside.select(share).item() if self.inside["cpu_ns"].sum() else None

    @cached_property
    def measured(self) -> bool:
        """Whether cycles and instructions were counted with the samples."""
        inside = self.inside
        return bool(inside["instructions"].sum() > 0 and inside["cycles"].null_count() < inside.height)

    @property
    def counts_misses(self) -> bool:
        """Whether misses of the last-level cache were."""
        return bool(self.inside["llc_misses"].drop_nulls().sum())

    @cached_property
    def by_layer(self) -> pl.DataFrame:
        """The kernels of each layer, as ``sampled_kernels.kernels_by_layer``."""
        return self._widened(sampled_kernels.kernels_by_layer(self.inside, self.kernels))

    @cached_property
    def unsampled_ns(self) -> float:
        """Processor time in the inference for which no sample stands, by what is known of the pass; 0 where that is
        little. What threads do before they can be sampled lies where they begin, and nowhere else: no chance error."""
        seen = self.detail.represented_share if self.detail is not None else None
        if seen is None or not 0 < seen < 1 - UNSAMPLED_SHARE:
            return 0.0
        return float(self.inside["cpu_ns"].sum()) * (1 - seen) / seen

    def _widened(self, table: pl.DataFrame) -> pl.DataFrame:
        return sampled_kernels.widened(table, self.unsampled_ns)

    @cached_property
    def lanes(self) -> dict[int, int]:
        """Which threads continue one another, as ``lanes.lanes``."""
        return lanes(self.inside, self.lives)

    def share(self, chosen: pl.Expr) -> float | None:
        """The share of the samples for which this holds."""
        return self.inside.select(chosen.sum() / pl.len()).item() if self.inside.height else None

    def shares(self) -> dict[str, float | None]:
        """Of the samples of the inference: ``module_share`` lie within a module of the model, ``named_share`` in code
        that has a name, ``wait_share`` in the OpenMP runtime."""
        return {
            "module_share": self.share(pl.col("module").is_not_null()),
            "named_share": self.share(pl.col("name").is_not_null()),
            "wait_share": self.share(pl.col("code").eq_missing(sampled_kernels.WAITING_DOMAIN)),
        }

    def unknown(self) -> int:
        """How many samples lie in memory of no known file."""
        nowhere = self.kernels.filter(pl.col("library") == UNKNOWN_LIBRARY).select(code_range="kernel")
        return self.inside.join(nowhere, on="code_range", how="semi").height + self.inside["code_range"].null_count()

    def coverage(self) -> list[dict[str, Any]]:
        """Samples by kind of owner, as ``samples.coverage``."""
        return samples.coverage(self.placed).with_columns(pl.col("cpu_ns") / len(self.iterations)).to_dicts()

    def kernel_rows(self, cpi: CpiByTime | None) -> list[dict[str, Any]]:
        """The kernels of the whole (``layer`` is null), small ones left out, and of each layer, those left out that are
        small in it and in the whole; most processor time first. ``cpi`` counts where none was measured: then the
        instructions are all that were counted in the kernel there, in own code too."""
        number = len(self.iterations)
        of_whole = self._widened(sampled_kernels.kernel_table(self.inside, self.kernels))
        of_whole = of_whole.filter(pl.col("share") >= LEAST_SHARE_OF_WHOLE)
        known = pl.col("kernel").is_in(of_whole["kernel"].implode(), nulls_equal=True)
        listed = self.by_layer.filter((pl.col("share") >= LEAST_SHARE) | known)
        frame = pl.concat([of_whole, listed], how="diagonal").with_columns(
            pl.col("name").fill_null(instrumented.UNNAMED),
            pl.col("library").fill_null(UNKNOWN_LIBRARY),
            pl.col("instructions") / number,
        )
        keys = ["layer", *kernel_cpi.KEYS]
        frame = self.with_cpi(frame, cpi.kernels if cpi is not None else None, keys)
        if not self.measured and cpi is not None:
            frame = frame.drop("instructions").join(
                cpi.counted_in(frame), on=keys, how="left", nulls_equal=True, maintain_order="left"
            )
        full = pl.when(pl.col("full_name") != pl.col("name")).then("full_name")
        columns = [*FIGURES, *CPI, "llc_mpki", "layer", "library", "layers", "code_ranges", "share_of_kernel",
                   "instructions"]  # fmt: skip
        rows = (
            frame.with_columns(pl.col("cpu_ns") / number, *if_enough("cpi", "llc_mpki"))
            .select(*columns, kernel="name", full_name=full, domain=pl.col("domain").fill_null("other"))
            .to_dicts()
        )
        return [{**row, "waits": waiting.cause(row["domain"], row["kernel"])} for row in rows]

    def with_cpi(self, frame: pl.DataFrame, cpi: pl.DataFrame | None, keys: list[str]) -> pl.DataFrame:
        """The rows with ``CPI``: as counted with the samples, else from these."""
        if self.measured or cpi is None:
            few = pl.when(pl.col("samples") < FEW_SAMPLES).then(pl.lit(no_cpi.FEW))
            return frame.with_columns(
                *(pl.lit(None, pl.Float64).alias(end) for end in ("cpi_low", "cpi_high")),
                cpi_missing=few if self.measured else pl.lit(None, pl.String),
            )
        found = cpi.select(*keys, "cpi", "cpi_low", "cpi_high", cpi_missing="reason")
        joined = frame.drop("cpi").join(found, on=keys, how="left", nulls_equal=True, maintain_order="left")
        return joined.with_columns(
            cpi_missing=pl.when(pl.col("cpi").is_null()).then(
                pl.coalesce("cpi_missing", kernel_cpi.why_uncounted(joined))
            )
        )

    def waiting(self) -> list[dict[str, Any]]:
        """The code that waits, as ``sampled_kernels.waiting_table``."""
        table = self._widened(sampled_kernels.waiting_table(self.inside))
        return table.with_columns(pl.col("cpu_ns") / len(self.iterations)).to_dicts()

    def reorders(self) -> list[dict[str, Any]]:
        """Changes of layout for oneDNN in the whole (``path`` is null, first) and in the layers that enough samples
        tell of, as ``sampled_kernels.reorder_table``; empty: not known."""
        table = sampled_kernels.reorder_table(self.inside)
        if table is None:
            return []
        table = self._widened(table)
        enough = pl.col("layer").is_null() | (pl.col("of_samples") >= FEW_SAMPLES)
        columns = [pl.col("layer").alias("path"), *FIGURES]
        rows = table.filter(enough).drop_nulls("share").with_columns(pl.col("cpu_ns") / len(self.iterations))
        return rows.select(columns).to_dicts()


def sampled_pass(
    record: PassRecord,
    taken: pl.DataFrame,
    spans: pl.DataFrame,
    kernels: pl.DataFrame,
    switches: pl.DataFrame,
    known_threads: pl.DataFrame,
    *,
    stacks: pl.DataFrame,
    lifetimes: pl.DataFrame,
    series: pl.DataFrame,
    modules: pl.DataFrame,
    threads: int | None,
) -> SampledPass:
    """``taken``: the pass's samples; the other tables are its rows too, but for ``modules``: the run's ``layers``."""
    # preemption is one of the things that samples and switches are there to show: no iteration is left out
    iterations = select(record.iterations, disturbed_too=True).timed
    of_team = team(taken.lazy(), kernels.lazy(), switches.lazy())
    if record.laid_out:  # by their moments samples would be any layer's
        spans = spans.filter(pl.col("kind") != "layer")
    attributed = samples.attribute_samples(taken, spans, modules, of_team)
    placed = attributed.filter(pl.col("iteration").is_in(list(iterations)))
    inside = sampled_kernels.sampled(placed, kernels, iterations, stacks)
    return SampledPass(
        record=record,
        taken=taken,
        spans=spans,
        modules=modules,
        kernels=kernels,
        switches=switches,
        known_threads=known_threads,
        lives=lives(taken, switches, lifetimes, record.main_tid),
        clock=core_clock(record, series),
        iterations=iterations,
        placed=placed,
        inside=inside,
        threads=threads,
        team=of_team,
    )


def if_enough(*names: str) -> list[pl.Expr]:
    """Figures of rows with few samples say nothing."""
    return [pl.when(pl.col("samples") >= FEW_SAMPLES).then(name).alias(name) for name in names]
