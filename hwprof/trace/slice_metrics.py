"""The report's metrics of each slice, from the counts of its own span."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import polars as pl

from hwprof.analysis import instrumented, metrics, summary, uncounted
from hwprof.analysis.attribution import owned_counts
from hwprof.analysis.large_tables import some_at_a_time
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import Machine, MetricDefinition, PassRecord
from hwprof.run.process_events import COUNTED_WINDOW, COVERAGE_EVENTS

_CALL: Final = ["path", "call"]


class InstrumentedCounts(NamedTuple):
    """Counts of the instrumented pass of the very same calls."""

    name: str  # of the pass
    operands: pl.DataFrame  # path, call and a column an operand


class MetricOrigins(NamedTuple):
    """What a reader must know of where metrics come from."""

    by_metric: Mapping[str, str] = MappingProxyType({})  # of those that are not made of the slice's own counts alone
    joined: frozenset[str] = frozenset()  # made of another pass's counts
    counts_pass: str | None = None  # that pass


PLAIN: Final = MetricOrigins()


class SliceMetrics:
    """Computes the metrics of spans. ``calls`` is the run's ``layer_calls`` table; ``threads``: the workload's."""

    def __init__(
        self,
        definitions: tuple[MetricDefinition, ...],
        calls: pl.DataFrame,
        threads: int | None = None,
        exact: InstrumentedCounts | None = None,
    ) -> None:
        self._calls = calls.select(*_CALL, *(pl.col(name).cast(pl.Float64) for name in ("macs", "bytes")))
        self._threads = threads
        self._exact = exact
        self._definitions = definitions

    @property
    def origins(self) -> MetricOrigins:
        """Of its metrics."""
        modelled = {metric.name: "modelled" for metric in self._definitions if metrics.is_modelled(metric)}
        if self._exact is None:
            return MetricOrigins(modelled)
        counted = set(self._exact.operands.columns)
        joined = {metric.name for metric in self._definitions if counted.intersection(metrics.operands_of(metric))}
        text = f"counts of pass {self._exact.name}"
        return MetricOrigins(dict.fromkeys(joined, text) | modelled, frozenset(joined), self._exact.name)

    def derive(self, spans: pl.DataFrame, counts: pl.DataFrame) -> pl.DataFrame:
        """A row a ``span``, in its order, and a column a metric: of those whose operands its own counts and its own
        call have."""
        wanted = spans.filter((pl.col("kind") == "layer") | pl.col("span").is_in(counts["span"].unique().implode()))
        if wanted.is_empty():
            return pl.DataFrame(schema={"span": pl.Int64})
        wanted = wanted.with_columns(whole=pl.struct("iteration", *_CALL).is_unique() | pl.col("call").is_null())
        parts = [self._values(spans, counts) for spans, counts in some_at_a_time(wanted, counts)]
        values = pl.concat(parts, how="diagonal")
        known = [name for name in values.columns if name != "owner" and values[name].null_count() < values.height]
        return values.select(pl.col("owner").cast(pl.Int64).alias("span"), *known).sort("span")

    def _values(self, wanted: pl.DataFrame, counts: pl.DataFrame) -> pl.DataFrame:
        """A column a metric, by ``owner``: the span."""
        owners = wanted.select(
            "span", *_CALL, "whole", owner=pl.col("span").cast(pl.String), caller="tid", time=_duration()
        )
        counted, _ = uncounted.hide(owned_counts(owners.select("span", "owner", "caller"), counts, None))
        wide = summary.by_name(counted)
        frame = owners.join(wide, on="owner", how="left").join(self._calls, on=_CALL, how="left")
        # Of a call in several parts none has all of its work.
        frame = frame.with_columns(pl.when("whole").then(name).alias(name) for name in ("macs", "bytes"))
        frame = frame.with_columns(pl.lit(self._threads, dtype=pl.Float64).alias("threads"))
        if COUNTED_WINDOW in frame.columns:
            frame = frame.rename({COUNTED_WINDOW: "counted-time"})
        if self._exact is not None:
            frame = frame.join(self._exact.operands, on=_CALL, how="left")
        return metrics.values(frame, self._definitions)


def _duration() -> pl.Expr:
    """In ns; null where it is none."""
    length = pl.col("end_ns") - pl.col("begin_ns")
    return pl.when(length > 0).then(length).cast(pl.Float64)


def slice_metrics_of(run: RunDirectory, record: PassRecord, calls: pl.DataFrame) -> SliceMetrics:
    """That of a pass of a run; ``calls`` is the run's ``layer_calls`` table."""
    other = instrumented.belonging(run.kept_passes(), record)
    threads = run.manifest.workload.threads if run.manifest.workload else None
    exact = _exact_counts(run, other) if other is not None else None
    return SliceMetrics(_derivable(record, run.manifest.machine, other), calls, threads, exact)


def _derivable(record: PassRecord, machine: Machine, other: PassRecord | None) -> tuple[MetricDefinition, ...]:
    """The metrics of a pass's slices: in an instrumented pass, whose times are not comparable, none that depends on
    a time; where ``other``, an instrumented pass, belongs to its times, only such: the others stand in that
    pass's own slices."""
    found = metrics.definitions(record, machine, other)
    clocked = [metric for metric in found if metrics.CLOCKED.intersection(metrics.operands_of(metric))]
    if record.times_from is not None:
        return tuple(metric for metric in found if metric not in clocked)
    elsewhere = other.metrics if other is not None else []
    return tuple(metric for metric in found if metric in clocked or metric not in elsewhere)


def _exact_counts(run: RunDirectory, record: PassRecord) -> InstrumentedCounts:
    events = [*(event.name for event in record.events), *COVERAGE_EVENTS]
    counts = run.scan_pass("counts", record.name).filter(pl.col("event").is_in(events)).collect()
    return InstrumentedCounts(record.name, instrumented.by_call(run.of_pass("spans", record.name), counts))
