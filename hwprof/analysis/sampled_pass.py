"""The samples of one pass, placed in layers, and what they tell of layers, kernels, threads and operators.

Processor times are those of one iteration, over all threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import polars as pl

from hwprof.analysis import instrumented, kernel_cpi, no_cpi, parallelism, sampled_kernels, samples, waiting
from hwprof.analysis.attribution import Attribution, attribute
from hwprof.analysis.core_clock import Clock, core_clock
from hwprof.analysis.cpu_time import TASK_CLOCK
from hwprof.analysis.instrumented_pass import INSTRUCTIONS, InstrumentedPass
from hwprof.analysis.iterations import select
from hwprof.analysis.kernel_cpi import CpiByTime
from hwprof.analysis.lanes import lanes
from hwprof.analysis.lifetimes import lives
from hwprof.analysis.owners import WHOLE
from hwprof.analysis.samples import FEW_SAMPLES
from hwprof.analysis.work_time import CallersTime, callers_time
from hwprof.run.details import InstrumentedDetail, SamplingDetail
from hwprof.run.manifest import PassRecord
from hwprof.run.roles import Role
from hwprof.run.schema import UNKNOWN_LIBRARY, empty

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

    @property
    def detail(self) -> SamplingDetail | None:
        """How the samples were taken."""
        found = (collector.detail_as(SamplingDetail) for collector in self.record.collectors)
        return next((detail for detail in found if detail is not None), None)

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
        return sampled_kernels.kernels_by_layer(self.inside, self.kernels)

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

    def layer_rows(self, cpi: CpiByTime | None = None) -> list[dict[str, Any]]:
        """The sampled layers, most processor time first: ``path``, the figures, and the lists ``threads`` and
        ``operators``. ``cpi`` as for ``kernel_rows``."""
        number = len(self.iterations)
        by_thread = parallelism.threads_by_layer(self.inside)
        off = parallelism.off_cpu(self.switches, self.spans, self.modules, self.iterations)
        by_lane = parallelism.threads_by_layer(self.inside.with_columns(self._lane()))
        off = self._of_those_that_work(off, by_lane)
        sums = off.group_by("layer").agg(pl.col("off_cpu_ns", "preempted_ns").sum() / number)
        enough = pl.col("samples") >= FEW_FOR_SHARES
        frame = (
            sampled_kernels.layer_table(self.inside)
            .join(self._balance(by_lane), on="layer", how="left", maintain_order="left")
            .join(sums, on="layer", how="left", maintain_order="left")
            .with_columns(
                pl.col("off_cpu_ns", "preempted_ns").fill_null(0.0),
                pl.col("cpu_ns") / number,
                *(pl.when(enough).then(name).alias(name) for name in ("wait_share", "efficiency")),
                *_if_enough("cpi", "llc_mpki"),
            )
        )
        frame = self._with_cpi(frame, cpi.layers if cpi is not None else None, ["layer"])
        columns = [*FIGURES, *CPI, "llc_mpki", "named_share", "wait_share", "efficiency", "imbalance",
                   "threads_sharing", "off_cpu_ns", "preempted_ns"]  # fmt: skip
        threads, operators = self._threads(by_thread, off), self._operators()
        return [
            {**row, "threads": threads.get(row["path"], []), "operators": operators.get(row["path"], [])}
            for row in frame.select(*columns, path="layer").iter_rows(named=True)
        ]

    def kernel_rows(self, cpi: CpiByTime | None) -> list[dict[str, Any]]:
        """The kernels of the whole (``layer`` is null), small ones left out, and of each layer, those left out that are
        small in it and in the whole; most processor time first. ``cpi`` counts where none was measured: then the
        instructions are all that were counted in the kernel there, in own code too."""
        number = len(self.iterations)
        of_whole = sampled_kernels.kernel_table(self.inside, self.kernels)
        of_whole = of_whole.filter(pl.col("share") >= LEAST_SHARE_OF_WHOLE)
        known = pl.col("kernel").is_in(of_whole["kernel"].implode(), nulls_equal=True)
        listed = self.by_layer.filter((pl.col("share") >= LEAST_SHARE) | known)
        frame = pl.concat([of_whole, listed], how="diagonal").with_columns(
            pl.col("name").fill_null(instrumented.UNNAMED),
            pl.col("library").fill_null(UNKNOWN_LIBRARY),
            pl.col("instructions") / number,
        )
        keys = ["layer", *kernel_cpi.KEYS]
        frame = self._with_cpi(frame, cpi.kernels if cpi is not None else None, keys)
        if not self.measured and cpi is not None:
            working = cpi.instructions.filter(pl.col("domain") != sampled_kernels.WAITING_DOMAIN)
            counted = working.rename({"kernel": "name", "value": "instructions"}).select(*keys, "instructions")
            frame = frame.drop("instructions").join(
                counted, on=keys, how="left", nulls_equal=True, maintain_order="left"
            )
        full = pl.when(pl.col("full_name") != pl.col("name")).then("full_name")
        columns = [*FIGURES, *CPI, "llc_mpki", "layer", "library", "layers", "code_ranges", "share_of_kernel",
                   "instructions"]  # fmt: skip
        rows = (
            frame.with_columns(pl.col("cpu_ns") / number, *_if_enough("cpi", "llc_mpki"))
            .select(*columns, kernel="name", full_name=full, domain=pl.col("domain").fill_null("other"))
            .to_dicts()
        )
        return [{**row, "waits": waiting.cause(row["domain"], row["kernel"])} for row in rows]

    def _with_cpi(self, frame: pl.DataFrame, cpi: pl.DataFrame | None, keys: list[str]) -> pl.DataFrame:
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
        table = sampled_kernels.waiting_table(self.inside)
        return table.with_columns(pl.col("cpu_ns") / len(self.iterations)).to_dicts()

    def reorders(self) -> list[dict[str, Any]]:
        """Changes of layout for oneDNN in the whole (``path`` is null, first) and in the layers that enough samples
        tell of, as ``sampled_kernels.reorder_table``; empty: not known."""
        table = sampled_kernels.reorder_table(self.inside)
        if table is None:
            return []
        enough = pl.col("layer").is_null() | (pl.col("of_samples") >= FEW_SAMPLES)
        columns = [pl.col("layer").alias("path"), *FIGURES]
        rows = table.filter(enough).drop_nulls("share").with_columns(pl.col("cpu_ns") / len(self.iterations))
        return rows.select(columns).to_dicts()

    def kernel_cpi(
        self, passes: Sequence[InstrumentedPass], counts: pl.DataFrame, undisturbed: Attribution | None
    ) -> KernelCpi | None:
        """CPI of kernels by the instructions that one of the instrumented passes counted in the very same code.
        ``counts``: this pass's; ``undisturbed``: the measure pass's, if there is one."""
        same = instrumented.same_code((one.record for one in passes), self.record)
        other = next((one for one in passes if one.record in same), None)
        reference_ghz = _reference_ghz(other.record) if other is not None else None
        clock = self.clock or (Clock(reference_ghz) if reference_ghz is not None else None)
        if other is None or clock is None:
            return None
        counted = other.kernels.filter(pl.col("event").str.ends_with(INSTRUCTIONS))
        by_time = CpiByTime(
            self.inside, self.by_layer, counted, len(self.iterations), clock, self._callers(counts, undisturbed)
        )
        return KernelCpi(other.record.name, clock, reference_ghz, by_time)

    def _callers(self, counts: pl.DataFrame, undisturbed: Attribution | None) -> CallersTime:
        tids = self.spans.filter(pl.col("kind") == "layer")["tid"].unique().to_list()
        counts = counts.filter(pl.col("event") == TASK_CLOCK)
        own = attribute(self.spans, counts, self.modules, self.record, disturbed_too=True)
        records = any(one.role is Role.OPERATORS and one.state == "ran" for one in self.record.collectors)
        return callers_time(tids, own, undisturbed if records else None, self.iterations)

    def _lane(self) -> pl.Expr:
        """In the place of a thread its lane."""
        return pl.col("tid").replace(self.lanes)

    def _of_those_that_work(self, off: pl.DataFrame, by_lane: pl.DataFrame) -> pl.DataFrame:
        """Absences of the threads that work in the inference: others sleep through it, which is no loss. Where they are
        more at a time than the workload runs with, a pool of the model's own, those of a layer are the ones that share
        it."""
        placed = off.with_columns(lane=self._lane())
        each = self.inside.group_by(lane=self._lane()).agg(pl.col("cpu_ns").sum())
        working = each.filter(pl.col("cpu_ns") >= parallelism.WORKS * pl.col("cpu_ns").max())
        if self.threads is None or working.height <= self.threads:
            return placed.join(working, on="lane", how="semi").drop("lane")
        sharing = parallelism.sharing(by_lane, self.threads).select("layer", lane="tid")
        return placed.join(sharing, on=["layer", "lane"], how="semi").drop("lane")

    def _balance(self, by_lane: pl.DataFrame) -> pl.DataFrame:
        """Efficiency and imbalance by layer."""
        times = attribute(self.spans, empty("counts"), self.modules, self.record, disturbed_too=True).times
        kept = times.filter(pl.col("iteration").is_in(list(self.iterations)) & (pl.col("owner") != WHOLE))
        wall = kept.group_by(layer="owner").agg(pl.col("time_ns").sum())
        if self.threads is None:
            unknown = {name: pl.lit(None, pl.Float64) for name in ("efficiency", "imbalance")}
            return wall.select("layer", **unknown, threads_sharing=pl.lit(None, pl.Int64))
        found = parallelism.parallelism(by_lane, wall, self.threads)
        return found.select("layer", "efficiency", "imbalance", threads_sharing="threads")

    def _threads(self, by_thread: pl.DataFrame, off: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
        times = ("busy_ns", "wait_ns", "off_cpu_ns", "preempted_ns")
        frame = (
            by_thread.drop("busy_samples")
            .join(off.drop("times", "waited_ns"), on=["layer", "tid"], how="full", coalesce=True)
            .join(self.known_threads.select("tid", "name", "role"), on="tid", how="left")
            .with_columns(pl.col("samples", *times).fill_null(0))
            .with_columns(pl.col(times) / len(self.iterations))
            .sort("layer", "tid")
        )
        return _lists(frame)

    def _operators(self) -> dict[str, list[dict[str, Any]]]:
        if self.inside["operator"].null_count() == self.inside.height:
            return {}
        rows = sampled_kernels.operators_by_layer(self.inside).filter(pl.col("share") >= LEAST_SHARE)
        return _lists(rows.select("layer", "operator", "samples", "share"))


@dataclass(frozen=True)
class KernelCpi:
    """Cycles per instruction from samples' times and another pass's instructions."""

    pass_name: str
    clock: Clock
    reference_ghz: float | None
    by_time: CpiByTime


def sampled_pass(
    record: PassRecord,
    taken: pl.DataFrame,
    spans: pl.DataFrame,
    kernels: pl.DataFrame,
    switches: pl.DataFrame,
    known_threads: pl.DataFrame,
    *,
    lifetimes: pl.DataFrame,
    series: pl.DataFrame,
    modules: pl.DataFrame,
    threads: int | None,
) -> SampledPass:
    """``taken``: the pass's samples; the other tables are its rows too, but for ``modules``: the run's ``layers``."""
    # preemption is one of the things that samples and switches are there to show: no iteration is left out
    iterations = select(record.iterations, disturbed_too=True).timed
    placed = samples.attribute_samples(taken, spans, modules).filter(pl.col("iteration").is_in(list(iterations)))
    inside = sampled_kernels.sampled(placed, kernels, iterations)
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
    )


def _if_enough(*names: str) -> list[pl.Expr]:
    """Figures of rows with few samples say nothing."""
    return [pl.when(pl.col("samples") >= FEW_SAMPLES).then(name).alias(name) for name in names]


def _reference_ghz(record: PassRecord) -> float | None:
    found = (collector.detail_as(InstrumentedDetail) for collector in record.collectors)
    return next((detail.reference_ghz for detail in found if detail is not None), None)


def _lists(frame: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """The rows of each layer, in order, without its name."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in frame.iter_rows(named=True):
        found.setdefault(row.pop("layer"), []).append(row)
    return found
