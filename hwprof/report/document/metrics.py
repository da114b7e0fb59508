"""What the document says of events and metrics: meaning, provenance, and why one is missing."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import polars as pl

from hwprof.analysis import metrics, missing, uncore
from hwprof.report.document.schema import Event, MetricInfo
from hwprof.run.manifest import EventInfo, Machine, MetricDefinition, PassRecord


def events(infos: Sequence[EventInfo], counters: pl.DataFrame) -> list[Event]:
    """The events that were counted, in the order of ``infos``."""
    known = {info.name: info for info in infos}
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


def metric_infos(
    definitions: Sequence[MetricDefinition],
    operands: Sequence[str],
    apart: Collection[str],
    counted: Sequence[Event],
    record: PassRecord | None,
    machine: Machine,
) -> list[MetricInfo]:
    """The metrics in order. ``operands``: those that have values; ``apart``: metrics made of different iterations."""
    by_name = {event.name: event for event in counted}
    infos = []
    for metric in definitions:
        names = metrics.operands_of(metric)
        used = [by_name[name] for name in metrics.events_of(metric) if name in by_name]
        of_machine = any(name.startswith(uncore.PREFIX) for name in names)
        sources = {event.provenance for event in used}
        if of_machine or metrics.CLOCKED.intersection(names):
            sources.add("measured")
        if metrics.is_modelled(metric):
            sources.add("modelled")
        infos.append(
            MetricInfo(
                name=metric.name,
                title=metric.title,
                unit=metric.unit,
                formula=metric.formula,
                group=metric.group,
                meaning=metric.meaning,
                caveat=metric.caveat,
                reference=metric.source,
                digits=metric.digits,
                core=metric.core,
                scope="machine" if of_machine else "threads",
                provenance="modelled" if metrics.is_modelled(metric) else "derived",
                sources=sorted(sources),
                running_share=min((event.running_share for event in used), default=1.0),
                same_iterations=metric.name not in apart,
                missing=missing.metric_missing(metric, operands, record, machine),
            )
        )
    return infos
