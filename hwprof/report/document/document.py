"""Makes the one document that the terminal, JSON and CSV show from a run directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import polars as pl

from hwprof.analysis import (
    cpu_time,
    energy,
    flop_check,
    instrumented_counts,
    layers,
    metrics,
    operators,
    overhead,
    stages,
    uncore,
)
from hwprof.analysis.attribution import UNATTRIBUTED, WHOLE, Attribution, attribute
from hwprof.analysis.flop_check import FlopCheck
from hwprof.analysis.layer_types import layer_type_table
from hwprof.report.document import header, instrumented, primitives, ranking, rows
from hwprof.report.document import metrics as described
from hwprof.report.document.kernels_schema import Sampled
from hwprof.report.document.schema import Document, Effect, Energy, Hottest, ObserverEffect, Operator, Traffic
from hwprof.report.document.threads_schema import Waiting
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import MetricDefinition, PassRecord
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
    machine = run.manifest.machine
    records = {record.name: record for record in run.completed_passes() if record.iterations}
    main = records.get(MEASURE) or next(iter(records.values()), None)
    if main is None:
        return _without_passes(run, top, sort)
    measured = _load(run, main, modules)
    traced = _traced(run, records, measured, modules)
    threads = run.manifest.workload.threads if run.manifest.workload else None
    attribution = measured.attribution
    counted = instrumented_counts.find(run, main, attribution, modules)
    definitions = metrics.definitions(main, machine, counted.record if counted is not None else None)
    moved = _traffic(run, measured, modules)
    by_layer, by_type, by_stage = _figures(measured, counted, modules, definitions, threads, moved)
    known = [*main.events, *(counted.record.events if counted is not None else ())]
    events = described.events(known, by_layer.counters)
    operands = {*by_layer.operands, *by_stage.operands}
    infos = described.metric_infos(definitions, sorted(operands), by_layer.apart, events, main, machine)
    counting = overhead.counting_overhead(attribution)
    trace = (
        overhead.pass_overhead(attribution, traced.attribution)
        if traced is not None and traced is not measured
        else None
    )
    leaves = {layer.path: layer for layer in rows.layers(by_layer, counting, trace, _flops(run, by_layer, definitions))}
    unattributed, whole = leaves.pop(UNATTRIBUTED, None), leaves.pop(WHOLE, None)
    found, covered = _operators(traced)
    by_following = instrumented.find(run, modules)
    of_samples, of_threads = _samples(run, modules, by_following)
    return Document(
        **header.describe(run),
        figures_from=main.name,
        whole=attribution.whole,
        notes=header.notes(run, main, attribution, MEASURE),
        observer_effect=ObserverEffect(counting=_effect(counting), trace=_effect(trace)),
        closure=cpu_time.closure(measured.spans, measured.counts, attribution),
        events=events,
        metrics=infos,
        stages=rows.stages(by_stage),
        layers=list(leaves.values()),
        unattributed=unattributed,
        inference=whole,
        layer_types=rows.layer_types(by_type),
        operators=found,
        operators_coverage=covered,
        energy=_energy(run, measured),
        traffic=_traffic_rows(moved),
        followed=[found.described for found in by_following],
        sampled=of_samples,
        waiting=of_threads,
        primitives=primitives.build(run),
        hottest=Hottest(sort=sort, top=top, layers=ranking.rank(list(leaves.values()), sort, top, infos, events)),
    )


def _figures(
    measured: _Pass,
    counted: instrumented_counts.Joined | None,
    modules: pl.DataFrame,
    definitions: tuple[MetricDefinition, ...],
    threads: int | None,
    moved: uncore.Traffic,
) -> tuple[layers.Figures, layers.Figures, layers.Figures]:
    """Of layers, layer types and stages: from the pass's own counts, and from those that are joined with its times."""
    attribution = measured.attribution
    of_layers, of_types, of_stages = (
        (counted.layers, counted.layer_types, counted.stages) if counted is not None else (None, None, None)
    )
    by_layer = layers.layer_table(
        modules,
        attribution,
        definitions,
        threads,
        instrumented_counts.operands(uncore.operands(moved.layers), of_layers),
    )
    by_type = layer_type_table(
        modules,
        attribution,
        definitions,
        threads,
        instrumented_counts.operands(uncore.operands(moved.layer_types), of_types),
    )
    by_stage = stages.stage_table(
        measured.spans,
        measured.counts,
        measured.record,
        attribution.iterations,
        definitions,
        threads,
        instrumented_counts.operands(uncore.operands(moved.stages), of_stages),
    )
    return (
        instrumented_counts.with_counters(by_layer, of_layers),
        instrumented_counts.with_counters(by_type, of_types),
        instrumented_counts.with_counters(by_stage, of_stages),
    )


def _without_passes(run: RunDirectory, top: int | None, sort: str) -> Document:
    """What is known of a run that measured nothing."""
    machine = run.manifest.machine
    return Document(
        **header.describe(run),
        figures_from=None,
        whole="inference",
        notes=header.notes(run, None, None, MEASURE),
        observer_effect=ObserverEffect(counting=None, trace=None),
        closure=None,
        events=[],
        metrics=described.metric_infos(metrics.definitions(None, machine), (), (), [], None, machine),
        stages=[],
        layers=[],
        unattributed=None,
        inference=None,
        layer_types=[],
        operators=[],
        operators_coverage=None,
        energy=[],
        traffic=[],
        followed=[],
        sampled=None,
        waiting=None,
        primitives=None,
        hottest=Hottest(sort=sort, top=top, layers=[]),
    )


def _samples(
    run: RunDirectory, modules: pl.DataFrame, by_following: Sequence[instrumented.Found]
) -> tuple[Sampled | None, Waiting | None]:
    """What samples tell of code, and of threads. The modules need numpy, which other runs do not."""
    if run.scan("samples").head(1).collect().is_empty():
        return None, None
    from hwprof.analysis import sampled_pass
    from hwprof.report.document import kernels, threads

    taken = sampled_pass.find(run, modules)
    return (kernels.build(run, taken, by_following), threads.build(run, taken)) if taken is not None else (None, None)


def _traced(run: RunDirectory, records: dict[str, PassRecord], measured: _Pass, modules: pl.DataFrame) -> _Pass | None:
    """The trace pass. Its counts are not read: operators and its slowness are what it is for."""
    if measured.record.name == TRACE:
        return measured
    return _load(run, records[TRACE], modules, counted=False) if TRACE in records else None


def _load(run: RunDirectory, record: PassRecord, modules: pl.DataFrame, *, counted: bool = True) -> _Pass:
    spans = run.scan("spans").filter(pl.col("pass") == record.name).collect()
    counts = run.scan("counts").filter(pl.col("pass") == record.name).collect() if counted else empty("counts")
    return _Pass(record, spans, counts, attribute(spans, counts, modules, record))


def _series(run: RunDirectory, measured: _Pass, prefix: str) -> pl.DataFrame:
    mine = pl.col("pass") == measured.record.name
    return run.scan("series").filter(mine & pl.col("name").str.starts_with(prefix)).collect()


def _operators(traced: _Pass | None) -> tuple[list[Operator], float | None]:
    """The operators of the trace pass, and how much of its time they cover."""
    if traced is None:
        return [], None
    iterations = traced.attribution.iterations.all
    calls = operators.operator_calls(traced.spans, iterations)
    table = operators.operator_table(calls).iter_rows(named=True)
    return [Operator(**row) for row in table], operators.coverage(calls, traced.spans, iterations)


def _flops(
    run: RunDirectory, by_layer: layers.Figures, definitions: tuple[MetricDefinition, ...]
) -> dict[str, FlopCheck]:
    counted = next((metric for metric in definitions if metric.name == flop_check.COUNTED), None)
    if counted is None:
        return {}
    return flop_check.flop_checks(by_layer, run.read("layer_calls"), metrics.events_of(counted))


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
    readings = _series(run, measured, energy.ENERGY_PREFIX)
    table = energy.energy_table(measured.spans, readings, measured.attribution.iterations.all)
    return [Energy(**row) for row in table.iter_rows(named=True)]


def _traffic(run: RunDirectory, measured: _Pass, modules: pl.DataFrame) -> uncore.Traffic:
    readings = _series(run, measured, uncore.PREFIX)
    return uncore.by_owner(measured.spans, modules, readings, measured.attribution.iterations.all)


def _traffic_rows(moved: uncore.Traffic) -> list[Traffic]:
    kinds: tuple[tuple[Literal["stage", "layer", "layer type"], pl.DataFrame], ...] = (
        ("stage", moved.stages),
        ("layer", moved.layers),
        ("layer type", moved.layer_types),
    )
    return [Traffic(kind=kind, **row) for kind, table in kinds for row in table.iter_rows(named=True)]
