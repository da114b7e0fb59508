"""What the document says of events and metrics: meaning, provenance, and why one is missing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from hwprof.analysis.reasons import Missing
from hwprof.hardware.metrics import SAMPLED_OPERANDS, facts
from hwprof.report.document import kernels
from hwprof.run.manifest import EventInfo, Machine, MetricDefinition, PassRecord
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.cpu_time import Uncounted
    from hwprof.analysis.run_analysis import RunAnalysis


class Event(msgspec.Struct, kw_only=True, frozen=True):
    """An event that was counted, and what its name means on that machine."""

    name: str
    meaning: str | None
    unit: str
    kind: str | None
    provenance: str
    running_share: float  # the lowest of all owners


class MetricInfo(msgspec.Struct, kw_only=True, frozen=True):
    """A metric: how it is made on that processor, and why it is missing where it is."""

    name: str
    title: str
    unit: str
    formula: str
    group: str  # what --metrics calls it together with its kin
    meaning: str
    caveat: str | None
    reference: str | None  # where the formula is from
    digits: int
    core: bool
    scope: Literal["threads", "machine"]  # machine: other programs are in it
    provenance: Literal["derived", "modelled"]
    sources: list[str]  # the provenances of what it is made of
    running_share: float
    same_iterations: bool  # false: no iteration counted all of its events, so it is made of medians over different ones
    missing: Missing | None
    own_missing: Missing | None = None  # why ``NAME (own)`` and ``unattributed`` have none, though it was measured


def describe(analysis: RunAnalysis) -> tuple[list[Event], list[MetricInfo]]:
    """The main pass's events and metrics."""
    from hwprof.analysis import summary

    main, figures, counted = analysis.main, analysis.figures, analysis.counted
    if main is None or figures is None:
        return [], metric_infos(analysis.definitions, (), (), [], None, analysis.machine)
    known = [*main.events, *(counted.record.events if counted is not None else ())]
    events = event_infos(known, summary.events(figures.layers.counters))
    operands = sorted({*figures.layers.operands, *figures.stages.operands})
    return events, metric_infos(
        analysis.definitions,
        operands,
        figures.layers.across_iterations,
        events,
        main,
        analysis.machine,
        _no_sampled_cycles(analysis),
        analysis.uncounted,
    )


def _no_sampled_cycles(analysis: RunAnalysis) -> Unavailable | None:
    """Why samples gave no cycles; None where they did, or where nothing asks for them."""
    if analysis.counted is None:
        return None
    if analysis.sampled is None:
        return kernels.no_samples(analysis)
    from hwprof.analysis import sampled_cycles

    return sampled_cycles.why_none(analysis.sampled, analysis.kernel_cpi)


def event_infos(infos: Sequence[EventInfo], counted: Sequence[Mapping[str, Any]]) -> list[Event]:
    """The events that were ``counted`` (as ``summary.events`` finds them), in the order of ``infos``."""
    known = {info.name: info for info in infos}
    order = {name: number for number, name in enumerate(known)}
    rows = sorted(counted, key=lambda row: (order.get(row["name"], len(order)), row["name"]))
    return [
        Event(
            meaning=known[row["name"]].meaning if row["name"] in known else None,
            unit=known[row["name"]].unit if row["name"] in known else "1",
            kind=known[row["name"]].kind if row["name"] in known else None,
            **row,
        )
        for row in rows
    ]


def metric_infos(
    definitions: Sequence[MetricDefinition],
    operands: Sequence[str],
    across_iterations: Collection[str],
    counted: Sequence[Event],
    record: PassRecord | None,
    machine: Machine,
    no_sampled_cycles: Unavailable | None = None,
    uncounted: Uncounted | None = None,
) -> list[MetricInfo]:
    """The metrics in order. ``operands``: those that have values; ``across_iterations``: metrics made
    of different iterations; ``no_sampled_cycles``: why samples gave none; ``uncounted``: CPU time of no thread."""
    from hwprof.analysis import metrics, missing, uncore

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
        if set(SAMPLED_OPERANDS).intersection(names):
            sources |= {"instrumented", "sampled"}
        infos.append(
            MetricInfo(
                name=metric.name,
                title=facts()[metric.name].title if metric.name in facts() else metric.title,  # of older runs: today's
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
                same_iterations=metric.name not in across_iterations,
                missing=missing.metric_missing(metric, operands, record, machine, no_sampled_cycles)
                or missing.uncounted_missing(metric, uncounted),
                own_missing=missing.own_code_missing(metric, operands),
            )
        )
    return infos
