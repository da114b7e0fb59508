"""From groups, metrics and PAPI's own names to the events that are to be counted, with the catalogue's recipes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from collectors.papi.library import Papi
from hwprof.errors import UsageError
from hwprof.hardware import catalogue
from hwprof.hardware.catalogue import Event
from hwprof.hardware.metrics import MetricFacts, definition, groups, operands, vocabulary
from hwprof.run.manifest import MetricDefinition
from hwprof.unavailable import Unavailable

ALL: Final = "all"
DEFAULT: Final = "default"
LIST_EVENTS: Final = "papi_avail and papi_native_avail list its events"


@dataclass
class PapiSelection:
    """What was asked for: hardware events, and then the software ones, which are counted along in any case."""

    events: dict[str, Event] = field(default_factory=dict)
    metrics: list[MetricDefinition] = field(default_factory=list)
    dropped: dict[str, Unavailable] = field(default_factory=dict)


def select(papi: Papi, names: Iterable[str] | None) -> PapiSelection:
    """What is counted for these groups, metrics, presets and native events (None: the default metrics).

    Raises ``UsageError`` on a name that neither the catalogue nor PAPI knows.
    """
    file = catalogue.catalogue(catalogue.PAPI)
    described = file.named()
    selection = PapiSelection()
    for item in [DEFAULT] if names is None else names:
        metrics = _metrics(item.lower())
        if metrics:
            for metric in metrics:
                _want(metric, selection, papi, asked_for=metric.core or metric.name == item.lower())
        elif item in described or papi.code(item) is not None:
            plain = Event(name=item, meaning=f"PAPI's native event {item}")
            selection.events[item] = described.get(item, plain)
        else:
            raise UsageError(f"PAPI {papi.version} knows no event {item!r} on this machine", LIST_EVENTS)
    software = {event.name: event for event in file.defaults()}
    order = list(described)
    hardware = {name: event for name, event in selection.events.items() if event.kind == "hardware"}
    ordered = sorted(hardware, key=lambda name: order.index(name) if name in described else len(order))
    selection.events = {name: hardware[name] for name in ordered} | software
    return selection


def _metrics(name: str) -> list[MetricFacts]:
    """The metrics that a group's, a metric's or a collective name stands for."""
    if name in (ALL, DEFAULT):
        return [metric for metric in vocabulary() if metric.default or name == ALL]
    return [metric for metric in vocabulary() if name in (metric.name, metric.group if name in groups() else None)]


def _want(metric: MetricFacts, selection: PapiSelection, papi: Papi, *, asked_for: bool) -> None:
    """Adds a metric; one that nobody asked for by name is left out where the machine lacks one of its presets."""
    file = catalogue.catalogue(catalogue.PAPI)
    recipe = file.recipes.get(metric.name)
    if recipe is None:
        if asked_for:
            selection.dropped[metric.name] = Unavailable("no PAPI preset measures it", "perf's own events may")
        return
    made = definition(metric, [(catalogue.PAPI, recipe)], frozenset())
    described = file.named()
    events = [described[name] for name in operands(made.formula) if name in described]
    if asked_for or all(event.kind == "software" or papi.has(event.name) for event in events):
        selection.metrics.append(made)
        selection.events |= {event.name: event for event in events}
