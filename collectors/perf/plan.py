"""Which events are counted, in which sets: those that work here, packed into groups that the kernel schedules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from collectors.perf.trial import Trial
from collectors.shared.counting.notes import enumerated
from collectors.shared.event_opening import Opening, find_opening
from hwprof.collector.contract import Note, NoteKind
from hwprof.hardware import perf_event, permission
from hwprof.hardware.catalogue import Processor, microarchitecture
from hwprof.hardware.countable import Countable, Selection
from hwprof.hardware.machine import ROOT
from hwprof.hardware.metrics import operands
from hwprof.hardware.packing import Budget, EventSet, Part, pack
from hwprof.hardware.resolution import no_pmu
from hwprof.run.manifest import CoreKind, Machine, MetricDefinition
from hwprof.unavailable import Unavailable


@dataclass
class Plan:
    """What is counted. ``sets`` is empty where nothing is."""

    sets: list[EventSet]
    opening: Opening
    budgets: dict[str | None, Budget]  # the counters of each kind of core that is used
    dropped: dict[str, Unavailable] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    metrics: tuple[MetricDefinition, ...] = ()  # that were asked for, whether their events are counted or not

    def events(self) -> list[Countable]:
        """Every counted event once."""
        return list({event.name: event for group in self.sets for event in group.events}.values())

    def turns(self, event_set: EventSet) -> tuple[int, ...]:
        """The parts of the set that a thread runs on in turn, going from one kind of core to another."""
        if len(self.budgets) < 2:
            return ()
        return tuple(number for number, part in enumerate(event_set.parts) if part.pmu in self.budgets)

    def on_every_core(self, event_set: EventSet) -> bool:
        """Whether the set has events on each kind of core that is used."""
        return len(self.budgets) < 2 or len(self.turns(event_set)) == len(self.budgets)


def make_plan(
    selection: Selection,
    machine: Machine,
    *,
    kernel: bool | None = None,
    held_by: str | None = None,
    root: Path = ROOT,
) -> Plan:
    """The sets in which those events of the selection that work here are counted.

    ``kernel``: whether hardware events count kernel code; None: wherever it is allowed. ``held_by``: the collector that
    has counters of this process's threads already. Raises ``NotAllowedError``.
    """
    opening = find_opening(kernel=kernel)
    used = _used_kinds(selection, machine)
    trial = Trial(opening, {kind.pmu: kind.cpus for kind in used} if len(used) > 1 else {}, root)
    plan = Plan(
        [],
        opening,
        _budgets(used, machine),
        dict(selection.dropped),
        [Note(NoteKind.METHOD, note) for note in selection.notes],
        selection.metrics,
    )
    failures = {event.name: why for event in selection.events if (why := trial.failure(event)) is not None}
    plan.dropped.update(failures)
    bundles, unwanted = _complete(selection, failures)
    plan.dropped.update(unwanted)
    usable = [event for event in selection.events if event.name not in plan.dropped]
    holder = _holder(held_by) if held_by is not None else permission.who_holds_counters(root)
    _Packer(plan, trial, holder).pack(usable, bundles)
    if not any(event.kind == "hardware" for event in usable) and not perf_event.core_pmu_counts():
        _blame_the_missing_pmu(plan, selection, used, permission.why_no_hardware(root))
    plan.notes += _torn_metrics(selection, plan.sets)
    return plan


def _blame_the_missing_pmu(plan: Plan, selection: Selection, kinds: Sequence[CoreKind], why: Unavailable) -> None:
    """Where no hardware event works at all, the one reason behind all of them."""
    hardware = _hardware(selection)
    processors = [_processor(kind) for kind in kinds]
    pmus = {kind.pmu for kind in kinds} | {processor.pmu for processor in processors if processor} | {"cpu"}
    lacking = {no_pmu(pmu).reason for pmu in pmus if pmu is not None}
    for name, known in plan.dropped.items():
        if name in hardware or known.reason in lacking:
            plan.dropped[name] = why


def _holder(collector: str) -> Unavailable:
    return Unavailable(f"the {collector} has the others in this pass", f"--no-{collector}")


def _used_kinds(selection: Selection, machine: Machine) -> list[CoreKind]:
    """The kinds of core whose events were selected; all where none was."""
    pmus = {event.pmu for event in selection.events if event.kind == "hardware"}
    used = [kind for kind in machine.cores if kind.pmu in pmus]
    return used or list(machine.cores)


def _budgets(kinds: Sequence[CoreKind], machine: Machine) -> dict[str | None, Budget]:
    smt = machine.physical_cores is None or machine.logical_processors > machine.physical_cores
    return {kind.pmu: Budget.of(_processor(kind), smt=smt) for kind in kinds}


def _processor(kind: CoreKind) -> Processor | None:
    known = microarchitecture(kind.microarchitecture)
    return known.processor if known is not None else None


def _complete(
    selection: Selection, failures: dict[str, Unavailable]
) -> tuple[list[tuple[str, ...]], dict[str, Unavailable]]:
    """The bundles all of whose events work; and why the events are not counted that only the others wanted."""
    complete = [bundle for bundle in selection.bundles if not failures.keys() & set(bundle)]
    wanted = {name for bundle in complete for name in bundle}
    alone = {
        name: next(failures[failed] for failed in bundle if failed in failures)
        for bundle in reversed(selection.bundles)
        if bundle not in complete
        for name in bundle
        if name not in wanted and name not in failures
    }
    return complete, alone


class _Packer:
    """Packs by what the processor should have, and by what the kernel then really schedules."""

    def __init__(self, plan: Plan, trial: Trial, holder: Unavailable) -> None:
        """``holder``: who has the counters that are missing, if any are."""
        self._plan = plan
        self._trial = trial
        self._holder = holder
        self._corrected: set[str | None] = set()  # PMUs that had fewer counters than they should
        self._split: list[str] = []  # events of sets that had to be parted

    def pack(self, usable: Sequence[Countable], bundles: Sequence[Sequence[str]]) -> None:
        """Fills the plan's sets."""
        packing = pack(usable, bundles, self._plan.budgets)
        parts = [part for event_set in packing.sets for part in event_set.parts]
        starved = dict.fromkeys(part.pmu for part in parts if not self._schedules(part))
        for pmu in starved:
            self._measure(pmu, [event for event in usable if event.pmu == pmu and event.kind == "hardware"])
        if starved:
            packing = pack(usable, bundles, self._plan.budgets)
        for event in packing.oversized:
            self._plan.dropped[event.name] = Unavailable(
                f"takes {event.event.counters} of the PMU's counters at once, more than there are to be had"
            )
        for event_set in packing.sets:
            self._plan.sets += self._schedulable(event_set) if starved else [event_set]
        self._tidy()
        if self._split and not self._corrected:
            text = f"counted in smaller sets, since they do not get counters together: {self._holder.reason}"
            self._plan.notes.append(Note(NoteKind.METHOD, text, ", ".join(self._split), self._holder.remedy))

    def _tidy(self) -> None:
        """What failed in one set and works in another is counted, and sets whose hardware events all failed go."""
        counted = {event.name for event_set in self._plan.sets for event in event_set.events}
        for name in counted & self._plan.dropped.keys():
            del self._plan.dropped[name]
        with_hardware = [
            event_set for event_set in self._plan.sets if any(event.kind == "hardware" for event in event_set.events)
        ]
        self._plan.sets = with_hardware or self._plan.sets[:1]

    def _schedules(self, part: Part) -> bool:
        return self._trial.schedules(part.events)

    def _measure(self, pmu: str | None, events: Sequence[Countable]) -> None:
        """Corrects the budget of a PMU that did not hold what it should."""
        believed = self._plan.budgets.get(pmu)
        if believed is None or not events:
            return
        free = self._trial.free_counters(events, believed)
        if free is None:
            self._trial.in_turns = True  # nothing would be counted otherwise; how long it was is kept with every value
            return
        if free == believed:
            return
        self._plan.budgets[pmu] = free
        self._corrected.add(pmu)
        own = "the own counter" if len(free.taken) == 1 else "the own counters"
        taken = f" ({own} of {enumerated(sorted(free.taken))} not)" if free.taken else ""
        text = (
            f"{free.general} of {believed.general} general counters are free{taken}, so events are counted in smaller"
            f" sets: {self._holder.reason}"
        )
        self._plan.notes.append(Note(NoteKind.METHOD, text, remedy=self._holder.remedy))

    def _schedulable(self, event_set: EventSet) -> list[EventSet]:
        """The set if the kernel schedules all its parts, else sets of parts that it does schedule."""
        split = [self._fitting_parts(part) for part in event_set.parts]
        possible = [part for part in split if part]
        number = max(map(len, possible), default=0)
        return [EventSet(tuple(part[index % len(part)] for part in possible)) for index in range(number)]

    def _fitting_parts(self, part: Part) -> list[Part]:
        if self._schedules(part):
            return [part]
        hardware = [event for event in part.events if event.kind == "hardware"]
        software = tuple(event for event in part.events if event.kind == "software")
        led = [event for event in hardware if event.event.leader is not None]
        units = [[hardware[0], *led]] if led else []
        units += [[event] for event in hardware if not units or event not in units[0]]
        if len(units) < 2:
            for event in hardware:
                self._plan.dropped[event.name] = Unavailable(
                    f"opens but never gets a hardware counter together with others: {self._holder.reason}",
                    self._holder.remedy,
                )
            return [Part(None, software)] if software else []
        self._split += [event.name for event in hardware if event.name not in self._split]
        middle = (len(units) + 1) // 2
        halves = [tuple(event for unit in half for event in unit) for half in (units[:middle], units[middle:])]
        return [smaller for half in halves for smaller in self._fitting_parts(replace(part, events=half + software))]


def _torn_metrics(selection: Selection, sets: Sequence[EventSet]) -> list[Note]:
    """A note on the metrics whose events are all counted, but not together."""
    counted = {name for event_set in sets for name in event_set.names}
    torn = []
    for metric in selection.metrics:
        needed = {operand.partition("@")[0] for operand in operands(metric.formula)} & _hardware(selection)
        if needed and needed <= counted and not any(needed <= set(event_set.names) for event_set in sets):
            torn.append(metric.name)
    if not torn:
        return []
    text = "no set has counters for all the events, so they come from different iterations"
    return [Note(NoteKind.METHOD, text, ", ".join(torn))]


def _hardware(selection: Selection) -> set[str]:
    return {event.name for event in selection.events if event.kind == "hardware"}
