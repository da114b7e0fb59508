"""What a processor can count and what follows from it, as a document: behind ``hwprof events``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from hwprof import __version__
from hwprof.hardware.countable import Countable, Selection
from hwprof.hardware.metrics import operands
from hwprof.hardware.packing import Budget, Packing, pack
from hwprof.hardware.resolution import Kind
from hwprof.run.manifest import Machine, MetricDefinition
from hwprof.unavailable import Unavailable

SCHEMA_VERSION: Final = 1


class ListedEvent(msgspec.Struct, kw_only=True):
    """One event. ``unavailable`` null: it opens here, or another processor than this machine's is looked at."""

    name: str
    kind: str  # "hardware", "software"
    code: str  # as perf takes it
    counters: int  # general counters that it takes; 0: it has one of its own, or needs none
    only: list[int]  # the general counters that it is restricted to; empty: any
    scope: str  # "thread", "core", "socket"
    unit: str
    weight: int
    meaning: str
    caveat: str | None
    source: str | None
    unavailable: Unavailable | None = None


class ListedMetric(msgspec.Struct, kw_only=True):
    """One metric, with the formula that it has on this processor."""

    name: str
    title: str
    unit: str
    group: str
    formula: str
    events: list[str]
    meaning: str
    caveat: str | None
    source: str | None
    available: bool


class ListedSet(msgspec.Struct, kw_only=True):
    """Events that one iteration counts, and how many general counters they take, by PMU."""

    events: list[str]
    counters: dict[str, int]


class EventList(msgspec.Struct, kw_only=True):
    """Everything that ``hwprof events`` knows."""

    schema_version: int = SCHEMA_VERSION
    hwprof_version: str = __version__
    processor: str
    microarchitectures: list[str]  # the catalogue's files; none: it does not know this processor
    this_machine: bool  # false: read in the catalogue only
    general_counters: dict[str, int]  # by PMU, of one thread
    unavailable: Unavailable | None  # why no hardware event at all can be counted
    notes: list[str]
    events: list[ListedEvent]
    metrics: list[ListedMetric]
    sets: list[ListedSet]
    dropped: dict[str, Unavailable]  # what was asked for and this processor does not have


def build(
    machine: Machine,
    cores: Sequence[Kind],
    selection: Selection,
    why_not: Callable[[Countable], Unavailable | None] | None,
    unavailable: Unavailable | None,
) -> EventList:
    """The document. ``cores``: the kinds of core that it is about. ``why_not`` tells why an event does not open here;
    None: it is not tried, since the processor is another one. ``unavailable``: why no hardware event opens."""
    kinds = [(kind.pmu_name, kind.known) for kind in cores]
    smt = machine.physical_cores is None or machine.physical_cores < machine.logical_processors
    budgets: dict[str | None, Budget] = {
        pmu: Budget.of(known.processor if known else None, smt=smt) for pmu, known in kinds
    }
    countables = list({event.name: event for event in (*selection.events, *selection.uncore)}.values())
    events = [_event(event, why_not) for event in countables]
    missing = {event.name for event in events if event.unavailable is not None} | set(selection.dropped)
    packing = pack(selection.events, selection.bundles, budgets)
    return EventList(
        processor=" / ".join(known.processor.name if known else machine.processor for _, known in kinds),
        microarchitectures=[known.id for _, known in kinds if known],
        this_machine=why_not is not None,
        general_counters={pmu: budgets[pmu].general for pmu, _ in kinds},
        unavailable=unavailable,
        notes=[*selection.notes, *(note for _, known in kinds if known for note in known.processor.notes)],
        events=events,
        metrics=[_metric(metric, missing) for metric in selection.metrics],
        sets=_sets(packing, budgets),
        dropped=dict(selection.dropped),
    )


def as_json(listed: EventList) -> str:
    """The document as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(listed), indent=1).decode()


def _event(countable: Countable, why_not: Callable[[Countable], Unavailable | None] | None) -> ListedEvent:
    event = countable.event
    pmu = event.pmu or countable.pmu
    return ListedEvent(
        name=countable.name,
        kind=event.kind,
        code=f"{pmu}/{event.code}/" if event.code else countable.name,
        counters=0 if countable.fixed or event.kind == "software" or event.scope == "socket" else event.counters,
        only=list(event.only),
        scope=event.scope,
        unit=event.unit,
        weight=event.weight,
        meaning=countable.meaning,
        caveat=event.caveat,
        source=event.source,
        unavailable=why_not(countable) if why_not else None,
    )


def _metric(metric: MetricDefinition, missing: set[str]) -> ListedMetric:
    names = operands(metric.formula)
    return ListedMetric(
        name=metric.name,
        title=metric.title,
        unit=metric.unit,
        group=metric.group,
        formula=metric.formula,
        events=list(names),
        meaning=metric.meaning,
        caveat=metric.caveat,
        source=metric.source,
        available=not missing & set(names),
    )


def _sets(packing: Packing, budgets: dict[str | None, Budget]) -> list[ListedSet]:
    return [
        ListedSet(
            events=[event.name for event in event_set.events if event.kind == "hardware"],
            counters={
                part.pmu: budgets[part.pmu].used(part.events)
                for part in event_set.parts
                if part.pmu is not None and part.pmu in budgets
            },
        )
        for event_set in packing.sets
    ]
