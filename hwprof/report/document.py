"""Makes the one document that the terminal, JSON and CSV show from a run directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from hwprof.analysis import closure, energy, layers, metrics, missing, operators, overhead, stages
from hwprof.analysis.attribution import UNATTRIBUTED, WHOLE, Attribution, attribute
from hwprof.analysis.layer_types import layer_type_table
from hwprof.report import header, ranking
from hwprof.report.schema import (
    Counter,
    Document,
    Effect,
    Energy,
    Event,
    Hottest,
    Layer,
    LayerType,
    MetricInfo,
    ObserverEffect,
    Operator,
    Stage,
    Times,
)
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import Machine, PassRecord
from hwprof.run.schema import empty

MEASURE: Final = "measure"
TRACE: Final = "trace"


@dataclass(frozen=True)
class _Pass:
    """A completed pass with its rows."""

    record: PassRecord
    spans: pl.DataFrame
    counts: pl.DataFrame
    attribution: Attribution


def build(run: RunDirectory, top: int | None = None, sort: str = "time") -> Document:
    """The report of a run; ``top`` and ``sort`` choose ``hottest`` only, the rest is everything there is.

    Figures come from the pass ``measure`` (where there is none, from the first completed one, and the document says
    so), operators from ``trace``. Raises ``UsageError`` for an unknown ``sort``, ``HwprofError`` for one not measured.
    """
    modules = run.read("layers")
    records = {record.name: record for record in run.completed_passes() if record.iterations}
    main = records.get(MEASURE) or next(iter(records.values()), None)
    if main is None:
        return _without_passes(run, top, sort)
    measured = _load(run, main, modules)
    traced = _traced(run, records, measured, modules)
    threads = run.manifest.workload.threads if run.manifest.workload else None
    definitions = metrics.definitions()
    attribution = measured.attribution
    by_layer = layers.layer_table(modules, attribution, definitions, threads)
    by_type = layer_type_table(modules, attribution, definitions, threads)
    by_stage = stages.stage_table(
        measured.spans, measured.counts, measured.record, attribution.iterations, definitions, threads
    )
    events = _events(measured.record, by_layer.counters)
    infos = _metric_infos(definitions, by_layer.operands, events, measured.record, run.manifest.machine)
    counting = overhead.counting_overhead(attribution)
    trace = (
        overhead.pass_overhead(attribution, traced.attribution)
        if traced is not None and traced is not measured
        else None
    )
    rows = {layer.path: layer for layer in _layers(by_layer, counting, trace)}
    unattributed, whole = rows.pop(UNATTRIBUTED, None), rows.pop(WHOLE, None)
    leaves = list(rows.values())
    found, covered = _operators(traced)
    return Document(
        **header.describe(run),
        figures_from=measured.record.name,
        whole=attribution.whole,
        notes=header.notes(run, measured.record, attribution, MEASURE),
        observer_effect=ObserverEffect(counting=_effect(counting), trace=_effect(trace)),
        closure=closure.closure(measured.spans, measured.counts, attribution),
        events=events,
        metrics=infos,
        stages=_stages(by_stage),
        layers=leaves,
        unattributed=unattributed,
        inference=whole,
        layer_types=_layer_types(by_type),
        operators=found,
        operators_coverage=covered,
        energy=_energy(run, measured),
        hottest=Hottest(sort=sort, top=top, layers=ranking.rank(leaves, sort, top, infos, events)),
    )


def _without_passes(run: RunDirectory, top: int | None, sort: str) -> Document:
    """What is known of a run that measured nothing."""
    return Document(
        **header.describe(run),
        figures_from=None,
        whole="inference",
        notes=header.notes(run, None, None, MEASURE),
        observer_effect=ObserverEffect(counting=None, trace=None),
        closure=None,
        events=[],
        metrics=_metric_infos(metrics.definitions(), (), [], None, run.manifest.machine),
        stages=[],
        layers=[],
        unattributed=None,
        inference=None,
        layer_types=[],
        operators=[],
        operators_coverage=None,
        energy=[],
        hottest=Hottest(sort=sort, top=top, layers=[]),
    )


def _traced(run: RunDirectory, records: dict[str, PassRecord], measured: _Pass, modules: pl.DataFrame) -> _Pass | None:
    """The trace pass. Its counts are not read: operators and its slowness are what it is for."""
    if measured.record.name == TRACE:
        return measured
    return _load(run, records[TRACE], modules, counted=False) if TRACE in records else None


def _load(run: RunDirectory, record: PassRecord, modules: pl.DataFrame, *, counted: bool = True) -> _Pass:
    spans = run.scan("spans").filter(pl.col("pass") == record.name).collect()
    counts = run.scan("counts").filter(pl.col("pass") == record.name).collect() if counted else empty("counts")
    return _Pass(record, spans, counts, attribute(spans, counts, modules, record))


def _operators(traced: _Pass | None) -> tuple[list[Operator], float | None]:
    """The operators of the trace pass, and how much of its time they cover."""
    if traced is None:
        return [], None
    iterations = traced.attribution.iterations.all
    calls = operators.operator_calls(traced.spans, iterations)
    rows = operators.operator_table(calls).iter_rows(named=True)
    return [Operator(**row) for row in rows], operators.coverage(calls, traced.spans, iterations)


def _events(record: PassRecord, counters: pl.DataFrame) -> list[Event]:
    """The events that were counted, in the order of the pass's own list."""
    known = {info.name: info for info in record.events}
    order = {name: number for number, name in enumerate(known)}
    found = counters.group_by("event").agg(pl.col("provenance").first(), pl.col("running_share").min())
    rows = sorted(found.iter_rows(), key=lambda row: (order.get(row[0], len(order)), row[0]))
    return [
        Event(
            name=name,
            meaning=known[name].meaning if name in known else None,
            unit=known[name].unit if name in known else "1",
            kind=known[name].kind if name in known else None,
            provenance=provenance,
            running_share=share,
        )
        for name, provenance, share in rows
    ]


def _metric_infos(
    definitions: Sequence[metrics.Metric],
    operands: Sequence[str],
    events: Sequence[Event],
    record: PassRecord | None,
    machine: Machine,
) -> list[MetricInfo]:
    counted = {event.name: event for event in events}
    infos = []
    for metric in definitions:
        used = [counted[name] for name in metric.events if name in counted]
        clock = {"measured"} if {"time", "counted-time"} & set(metric.operands) else set()
        model = {"modelled"} if metric.modelled else set()
        infos.append(
            MetricInfo(
                name=metric.name,
                title=metric.title,
                unit=metric.unit,
                formula=metric.formula,
                meaning=metric.meaning,
                digits=metric.digits,
                core=metric.core,
                provenance="modelled" if metric.modelled else "derived",
                sources=sorted({event.provenance for event in used} | clock | model),
                running_share=min((event.running_share for event in used), default=1.0),
                missing=missing.metric_missing(metric, operands, record, machine),
            )
        )
    return infos


def _effect(ratios: pl.DataFrame | None) -> Effect | None:
    if ratios is None:
        return None
    whole = ratios.filter((pl.col("owner") == WHOLE) & pl.col("ratio").is_not_null())
    if not whole.height:
        return None
    low, middle, high = overhead.spread(ratios) or (None, None, None)
    row = whole.drop("owner").row(0, named=True)
    return Effect(**row, layers_p25=low, layers_median=middle, layers_p75=high)


def _energy(run: RunDirectory, measured: _Pass) -> list[Energy]:
    readings = run.scan("series").filter(
        (pl.col("pass") == measured.record.name) & pl.col("name").str.starts_with(energy.ENERGY_PREFIX)
    )
    kept = measured.attribution.iterations.all
    return [
        Energy(**row) for row in energy.energy_table(measured.spans, readings.collect(), kept).iter_rows(named=True)
    ]


# Frames to rows


def _times(row: dict[str, Any], prefix: str, repetitions: str) -> Times | None:
    if row.get(f"{prefix}_median_ns") is None:
        return None
    figures = {f"{name}_ns": row[f"{prefix}_{name}_ns"] for name in ("median", "mad", "mean", "std", "min", "max")}
    return Times(repetitions=row[repetitions], **figures)


def _counters(figures: layers.Figures) -> dict[str, dict[str, Counter]]:
    found: dict[str, dict[str, Counter]] = {}
    for row in figures.counters.iter_rows(named=True):
        owner, event = row.pop("owner"), row.pop("event")
        found.setdefault(owner, {})[event] = Counter(**row)
    return found


def _metrics(figures: layers.Figures) -> dict[str, dict[str, float | None]]:
    return {row.pop("owner"): row for row in figures.metrics.iter_rows(named=True)}


def _ratios(table: pl.DataFrame | None) -> dict[str, float]:
    return dict(table.select("owner", "ratio").iter_rows()) if table is not None else {}


def _layers(figures: layers.Figures, counting: pl.DataFrame, trace: pl.DataFrame | None) -> list[Layer]:
    counters, values = _counters(figures), _metrics(figures)
    counting_ratios, trace_ratios = _ratios(counting), _ratios(trace)
    columns = ("order", "index", "type", "input_shapes", "output_shapes", "more_shapes", "parameters", "macs", "bytes")
    return [
        Layer(
            path=(owner := row["owner"]),
            **{name: row[name] for name in columns},
            share=row["share"],
            calls=row["calls_per_iteration"],
            time=_times(row, "time", "iterations"),
            counters=counters.get(owner, {}),
            metrics=values[owner],
            counting_ratio=counting_ratios.get(owner),
            trace_ratio=trace_ratios.get(owner),
        )
        for row in figures.rows.iter_rows(named=True)
    ]


def _layer_types(figures: layers.Figures) -> list[LayerType]:
    counters, values = _counters(figures), _metrics(figures)
    return [
        LayerType(
            type=(owner := row["owner"]),
            **{name: row[name] for name in ("layers", "parameters", "macs", "bytes", "share")},
            calls=row["calls_per_iteration"],
            time=_times(row, "time", "iterations"),
            counters=counters.get(owner, {}),
            metrics=values[owner],
        )
        for row in figures.rows.iter_rows(named=True)
    ]


def _stages(figures: layers.Figures) -> list[Stage]:
    counters, values = _counters(figures), _metrics(figures)
    return [
        Stage(
            name=(owner := row["owner"]),
            **{name: row[name] for name in ("inside", "calls", "total_ns", "share")},
            call=_times(row, "call", "calls"),
            counters=counters.get(owner, {}),
            metrics=values[owner],
        )
        for row in figures.rows.iter_rows(named=True)
    ]
