"""What follows from a span's own counts: the report's metrics, for every slice that was counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

import polars as pl

from hwprof.analysis import instrumented, metrics, summary
from hwprof.analysis.attribution import owned_counts
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import Machine, MetricDefinition, PassRecord
from hwprof.run.schema import COUNTED_WINDOW

Figures: TypeAlias = Mapping[str, float]

_CALL: Final = ["path", "call"]


class Joined(NamedTuple):
    """Counts of a pass that followed the code of the very same calls."""

    name: str  # of the pass
    operands: pl.DataFrame  # path, call and a column an operand


class Deriver:
    """Computes the metrics of spans. ``calls`` is the run's ``layer_calls`` table; ``threads``: the workload's."""

    def __init__(
        self,
        definitions: tuple[MetricDefinition, ...],
        calls: pl.DataFrame,
        threads: int | None = None,
        joined: Joined | None = None,
    ) -> None:
        self._calls = calls.select(*_CALL, *(pl.col(name).cast(pl.Float64) for name in ("macs", "bytes")))
        self._threads = threads
        self._joined = joined
        self._titles = {metric.name: self._title(metric) for metric in definitions}
        self._definitions = definitions

    def _title(self, metric: MetricDefinition) -> str:
        """With what a reader must know of where it comes from."""
        if metrics.is_modelled(metric):
            return f"{metric.title} (modelled)"
        if self._joined is not None and set(metrics.operands_of(metric)).intersection(self._joined.operands.columns):
            return f"{metric.title} (counts: pass {self._joined.name})"
        return metric.title

    def derive(self, spans: pl.DataFrame, counts: pl.DataFrame) -> dict[int, Figures]:
        """By span: title -> value, of the metrics whose operands its own counts and its own call have."""
        wanted = spans.filter((pl.col("kind") == "layer") | pl.col("span").is_in(counts["span"].unique().implode()))
        if wanted.is_empty():
            return {}
        owners = wanted.select("span", *_CALL, owner=pl.col("span").cast(pl.String), caller="tid", time=_duration())
        wide = summary.by_name(owned_counts(owners.select("span", "owner", "caller"), counts, None))
        frame = owners.join(wide, on="owner", how="left").join(self._calls, on=_CALL, how="left")
        frame = frame.with_columns(pl.lit(self._threads, dtype=pl.Float64).alias("threads"))
        if COUNTED_WINDOW in frame.columns:
            frame = frame.rename({COUNTED_WINDOW: "counted-time"})
        if self._joined is not None:
            frame = frame.join(self._joined.operands, on=_CALL, how="left")
        values = metrics.values(frame, self._definitions)
        known = [name for name in values.columns if name != "owner" and values[name].null_count() < values.height]
        return {
            int(row.pop("owner")): {self._titles[name]: value for name, value in row.items() if value is not None}
            for row in values.select("owner", *known).iter_rows(named=True)
        }


def _duration() -> pl.Expr:
    """In ns; null where it is none."""
    length = pl.col("end_ns") - pl.col("begin_ns")
    return pl.when(length > 0).then(length).cast(pl.Float64)


def deriver_of(run: RunDirectory, record: PassRecord, calls: pl.DataFrame) -> Deriver:
    """That of a pass of a run; ``calls`` is the run's ``layer_calls`` table."""
    other = instrumented.belonging(run.kept_passes(), record)
    threads = run.manifest.workload.threads if run.manifest.workload else None
    joined = _joined(run, other) if other is not None else None
    return Deriver(_derivable(record, run.manifest.machine, other), calls, threads, joined)


def _derivable(record: PassRecord, machine: Machine, joined: PassRecord | None) -> tuple[MetricDefinition, ...]:
    """The metrics of a pass's slices: where its work took long because the code was followed, none that a time goes
    into; of what is ``joined`` with its times, only such: the others stand in that pass's own slices."""
    found = metrics.definitions(record, machine, joined)
    clocked = [metric for metric in found if metrics.CLOCKED.intersection(metrics.operands_of(metric))]
    if record.times_from is not None:
        return tuple(metric for metric in found if metric not in clocked)
    elsewhere = joined.metrics if joined is not None else []
    return tuple(metric for metric in found if metric in clocked or metric not in elsewhere)


def _joined(run: RunDirectory, record: PassRecord) -> Joined:
    mine = pl.col("pass") == record.name
    events = [event.name for event in record.events]
    counts = run.scan("counts").filter(mine & pl.col("event").is_in(events)).collect()
    return Joined(record.name, instrumented.by_call(run.scan("spans").filter(mine).collect(), counts))
