"""From what the user asks for to what this machine counts: groups, metrics, events and raw codes, resolved."""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Final

from hwprof.errors import UsageError
from hwprof.hardware.catalogue import GENERIC, PAPI, Event, Recipe, catalogue, microarchitectures
from hwprof.hardware.cores import cpu_ranges
from hwprof.hardware.countable import Countable, Selection
from hwprof.hardware.machine import ROOT
from hwprof.hardware.metrics import (
    EFFICIENCY_CORE_SHARE,
    GIVEN_OPERANDS,
    MetricFacts,
    definition,
    efficiency_core_share,
    groups,
    operands,
    qualified_name,
    vocabulary,
)
from hwprof.hardware.resolution import Elsewhere, Kind
from hwprof.hardware.syntax import Request, read
from hwprof.run.manifest import CoreKind, Machine, MetricDefinition
from hwprof.unavailable import Unavailable

ALL: Final = "all"
DEFAULT: Final = "default"


def select(
    names: Sequence[str] | None,
    machine: Machine,
    root: Path = ROOT,
    affinity: Collection[int] | None = None,
    *,
    on_paper: bool = False,
) -> Selection:
    """What is counted for these groups, metrics, events, raw codes, ``all`` or ``default`` (None: the same).

    Software events are counted along, whatever is asked for. ``affinity``: the processors that will be used, by default
    this process's (of another machine's recorded tree: all). ``on_paper``: what the catalogue describes and no PMU here
    counts is not dropped; its code is ``ON_PAPER``. Raises ``UsageError`` for a name that nobody knows; what
    is known and not to be had here is in ``dropped``.
    """
    kinds = kinds_of_core(machine, root, affinity, on_paper=on_paper)
    selecting = _Selecting(machine, kinds, Elsewhere(root, on_paper))
    for item in [DEFAULT] if names is None else names:
        selecting.want(item)
    return selecting.result()


def kinds_of_core(
    machine: Machine, root: Path = ROOT, affinity: Collection[int] | None = None, *, on_paper: bool = False
) -> list[Kind]:
    """The kinds of core that will be used, those that general events count on first (arguments as of ``select``)."""
    if affinity is None:
        affinity = os.sched_getaffinity(0) if root == ROOT else ()
    cores = machine.cores or (CoreKind(None, None, ()),)
    used = [core for core in cores if not affinity or not core.cpus or set(core.cpus) & set(affinity)]
    return [Kind(core, machine, root, on_paper=on_paper) for core in used or cores]


def every_name(kinds: Iterable[Kind]) -> list[str]:
    """Every metric and every event of these kinds of core that can be asked for by name."""
    return [ALL, *dict.fromkeys(event.name for kind in kinds for event in kind.events.values())]


class _Selecting:
    """A selection in the making."""

    def __init__(self, machine: Machine, kinds: Sequence[Kind], elsewhere: Elsewhere) -> None:
        self._machine = machine
        self._kinds = kinds
        self._elsewhere = elsewhere
        self._events: dict[str, Countable] = {}
        self._uncore: dict[tuple[str, str | None], Countable] = {}
        self._bundles: dict[tuple[str, ...], None] = {}
        self._metrics: dict[str, MetricDefinition] = {}
        self._dropped: dict[str, Unavailable] = {}

    def want(self, item: str) -> None:
        """One item of the list."""
        name = item.lower()
        names = {metric.name: metric for metric in vocabulary()}
        if name in (ALL, DEFAULT):
            self._want_metrics(metric for metric in vocabulary() if metric.default or name == ALL)
        elif name in groups():
            self._want_metrics(metric for metric in vocabulary() if metric.group == name)
        elif name in names:
            self._want_metric(names[name], asked_for=True)
        else:
            self._want_event(read(item))

    def result(self) -> Selection:
        """What was wanted, with the software events."""
        for event in catalogue(GENERIC).defaults():
            self._count([(self._kinds[0], event)])
        ordered = sorted(self._events.values(), key=lambda event: event.kind)  # hardware first
        return Selection(
            events=tuple(ordered),
            bundles=tuple(self._bundles),
            metrics=tuple(self._metrics.values()),
            uncore=tuple(self._uncore.values()),
            dropped=self._dropped,
            notes=tuple(self._notes()),
        )

    # --- metrics

    def _want_metrics(self, metrics: Iterable[MetricFacts]) -> None:
        """A group's. Where the processor gives some of them, nobody misses those that it does not have at all, unless
        they are the ones that every report shows."""
        wanted = list(metrics)
        served = {metric.group for metric in wanted if self._owners(metric)}
        for metric in wanted:
            self._want_metric(metric, asked_for=metric.core or metric.group not in served)

    def _owners(self, metric: MetricFacts) -> list[tuple[Kind, Recipe]]:
        return [(kind, kind.recipes[metric.name]) for kind in self._kinds if metric.name in kind.recipes]

    def _want_metric(self, metric: MetricFacts, *, asked_for: bool) -> None:
        if metric.name == EFFICIENCY_CORE_SHARE:
            self._want_efficiency_core_share(metric, asked_for=asked_for)
            return
        owners = self._owners(metric)
        if owners and all(event.pmu for kind, recipe in owners for event in _events(kind, recipe)):
            owners = owners[:1]  # outside of cores: any kind of core's file tells it for all
        elif owners and len(owners) < len(self._kinds):
            self._dropped[metric.name] = _not_on_every_kind(self._kinds, [kind for kind, _ in owners])
            return
        if not owners:
            if asked_for:
                self._dropped[metric.name] = _no_recipe(self._kinds)
            return
        found = {kind: _events(kind, recipe) for kind, recipe in owners}
        everywhere = [
            event.name for events in found.values() for event in events if event.pmu or event.kind == "software"
        ]
        self._metrics[metric.name] = definition(
            metric, [(kind.pmu_name, recipe) for kind, recipe in owners], GIVEN_OPERANDS.union(everywhere)
        )
        self._count([(kind, event) for kind, events in found.items() for event in events])

    def _want_efficiency_core_share(self, metric: MetricFacts, *, asked_for: bool) -> None:
        made = efficiency_core_share(metric, [kind.pmu_name for kind in self._kinds])
        if made is not None:
            self._metrics[metric.name] = made
            self._count([(kind, kind.events["cycles"]) for kind in self._kinds])
        elif asked_for:
            self._dropped[metric.name] = Unavailable("the cores that are used are all of one kind")

    # --- events

    def _want_event(self, request: Request) -> None:
        wanted: Sequence[tuple[Kind, Event | Unavailable]]
        if request.name is not None:
            wanted = self._named(request, request.name)
        elif request.config is not None:
            wanted = [(kind, kind.raw(request.config)) for kind in self._kinds]
        else:
            wanted = self._on_pmu(request, request.pmu or "")
        for _, got in wanted:
            if isinstance(got, Unavailable):
                self._dropped[request.shown] = got
        self._count([(kind, got) for kind, got in wanted if isinstance(got, Event)], request)

    def _named(self, request: Request, name: str) -> Sequence[tuple[Kind, Event]]:
        found = [(kind, kind.events[name.lower()]) for kind in self._kinds if name.lower() in kind.events]
        if not found:
            raise self._unknown(request.written)
        first = found[0][1]
        return found[:1] if first.pmu or first.kind == "software" else found

    def _on_pmu(self, request: Request, pmu: str) -> list[tuple[Kind, Event | Unavailable]]:
        """perf's terms: on kinds of core (``cpu`` is all of a hybrid's), or elsewhere."""
        kinds = [kind for kind in self._kinds if kind.is_called(pmu)]
        if kinds:
            return [(kind, kind.terms(request.terms)) for kind in kinds]
        return [(self._kinds[0], self._elsewhere.terms(pmu, request.terms))]

    def _count(self, wanted: Sequence[tuple[Kind, Event]], request: Request | None = None) -> None:
        """Adds events that belong together; where one of them cannot be had, it is dropped and the others are not
        counted for its sake."""
        resolved = []
        complete = True
        for kind, event in wanted:
            leader = kind.events[event.leader] if event.leader else None
            for member in filter(None, (leader, event)):
                name = self._name(kind, member, request if member is event else None)
                got = self._resolve(kind, member, name, request if member is event else None)
                if isinstance(got, Unavailable):
                    self._dropped[name] = got
                    complete = False
                else:
                    resolved.append(got)
        if complete:
            self._keep([countable for got in resolved for countable in got])

    def _resolve(self, kind: Kind, event: Event, name: str, request: Request | None) -> list[Countable] | Unavailable:
        if event.pmu:
            return self._elsewhere.countables(event, name, request)
        one = kind.countable(event, name, request)
        return one if isinstance(one, Unavailable) else [one]

    def _keep(self, countables: Sequence[Countable]) -> None:
        bundle = []
        for countable in countables:
            if countable.event.pmu is not None and countable.event.scope != "thread":
                same = self._uncore.setdefault((countable.name, countable.pmu), countable)
            else:
                same = self._events.setdefault(countable.name, countable)
                if countable.kind == "hardware":
                    bundle.append(countable.name)
            if same.code != countable.code:
                raise UsageError(f"two events are called {countable.name!r}", "give one another name=")
        if bundle:
            self._bundles[tuple(dict.fromkeys(bundle))] = None

    def _name(self, kind: Kind, event: Event, request: Request | None) -> str:
        """What its counts are called: the catalogue's name where that was used, else as written; on several kinds of
        core with the PMU before it, as perf does."""
        plain = len(self._kinds) == 1 or event.pmu is not None or event.kind == "software"
        if request is None:
            return event.name if plain else qualified_name(event.name, kind.pmu_name)
        if request.label is not None or (plain and request.name is None):
            return request.shown if plain else qualified_name(request.shown, kind.pmu_name)
        modifiers = request.modifiers
        if plain:
            return f"{event.name}:{modifiers}" if modifiers else event.name
        given = event.name if request.name is not None else request.terms or request.written.partition(":")[0]
        return qualified_name(given, kind.pmu_name) + modifiers

    def _unknown(self, name: str) -> UsageError:
        known = {ALL, DEFAULT, *groups(), *(metric.name for metric in vocabulary())}
        for kind in self._kinds:
            known.update(kind.events)
        title = " / ".join(dict.fromkeys(kind.title for kind in self._kinds))
        others = [other.processor.name for other in microarchitectures() if name.lower() in other.catalogue.named()]
        if others:
            return UsageError(
                f"{title} has no event {name!r}: it is one of {', '.join(others)}", "hwprof events shows this machine's"
            )
        if name.lower().startswith(PAPI):
            return UsageError(f"{name!r} is a name of PAPI's", "--counters papi counts it")
        near = difflib.get_close_matches(name.lower(), sorted(known), n=3, cutoff=0.61)
        hint = f"{', '.join(near)}; " if near else ""
        return UsageError(
            f"there is no event, metric or group {name!r} on {title}", f"{hint}hwprof events shows what there is"
        )

    def _notes(self) -> list[str]:
        shared = [event.name for event in self._events.values() if event.event.scope == "core"]
        cores, threads = self._machine.physical_cores, self._machine.logical_processors
        if shared and cores is not None and cores < threads:
            return [f"of whole cores, both hardware threads together: {', '.join(shared)}"]
        return []


def _events(kind: Kind, recipe: Recipe) -> list[Event]:
    """What the recipe needs counted; raises ``KeyError`` for a name that the catalogue does not have."""
    names = dict.fromkeys([*operands(recipe.of), *operands(recipe.per or "")])
    return [kind.events[name] for name in names if name not in GIVEN_OPERANDS]


def _no_recipe(kinds: Sequence[Kind]) -> Unavailable:
    unknown = [kind.title for kind in kinds if kind.known is None]
    if unknown:
        return Unavailable(
            f"the event catalogue does not describe {unknown[0]}", "add a file for it: hwprof/hardware/events/README.md"
        )
    return Unavailable(f"{' / '.join(dict.fromkeys(kind.title for kind in kinds))} has no events for it")


def _not_on_every_kind(kinds: Sequence[Kind], able: Sequence[Kind]) -> Unavailable:
    lacking = [kind for kind in kinds if kind not in able]
    cpus = cpu_ranges([cpu for kind in able for cpu in kind.core.cpus])
    return Unavailable(
        f"{' and '.join(kind.title for kind in lacking)} cannot count it",
        f"keep to the cores that can: taskset -c {cpus} hwprof collect …",
    )
