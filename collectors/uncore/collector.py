"""The uncore collector as a session sees it."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Final

from collectors.shared.event_opening import KERNEL
from collectors.shared.periodic_sampling import PeriodicCollector
from collectors.uncore.controllers import Group, Plan, dram_events, make_plan, open_group
from collectors.uncore.traffic import Reading, TrafficLog
from hwprof.collector.contract import Availability, Collected, Note, NoteKind, PassContext
from hwprof.hardware import machine, perf_event, permission
from hwprof.hardware.catalogue import Event, Microarchitecture, microarchitecture
from hwprof.hardware.cores import core_kinds
from hwprof.run.details import DramDetail
from hwprof.unavailable import Unavailable

PERIOD_S: Final = 0.010
"""Between two readings, where a reading is short."""

SHARE: Final = 0.01
"""The largest share of a processor's time that reading may take: where there are many controllers, readings come less
often."""

TRIALS: Final = 5
"""Readings before the first one, from which the time of one is known."""

ALLOW_SOCKETS: Final = "sudo sysctl kernel.perf_event_paranoid=0 (or give hwprof CAP_PERFMON)"
WHOLE_MACHINE: Final = Note(
    NoteKind.SCOPE,
    "the whole machine's: every program's is in it, and a layer has its share by time only",
    "DRAM traffic",
)


class UncoreCollector(PeriodicCollector[TrafficLog]):
    """Reads the memory controllers of all sockets every 10 ms, or less often where that would take too long."""

    _period_s = PERIOD_S

    def __init__(self, root: Path = machine.ROOT) -> None:
        super().__init__()
        self._root = root
        self._counters: dict[Group, list[int]] = {}

    def availability(self) -> Availability:
        """Whether there are memory controllers that this user may count on; opens one counter for a moment."""
        plan = self._plan()
        if not plan.series:
            return self._why_none(plan)
        try:
            perf_event.close_group(open_group(plan.groups[0]))
        except OSError as error:
            return self._why_refused(error)
        return Availability(
            detail=DramDetail(pmus=sorted({group.pmu for group in plan.groups}), series=list(plan.series)),
            notes=tuple(Note.not_available(name, why) for name, why in plan.missing.items()),
            tools=(KERNEL,),
        )

    def _open(self, context: PassContext) -> TrafficLog:
        plan = self._plan()
        missing = dict(plan.missing)
        for group in plan.groups:
            try:
                self._counters[group] = open_group(group)
            except OSError as error:
                missing |= dict.fromkeys(group.series, Unavailable(f"{group} cannot be opened ({error.strerror})"))
        for fds in self._counters.values():
            perf_event.enable_group(fds[0])
        opened = Plan(tuple(self._counters), missing)
        self._period_s = self._affordable_s(opened)
        return TrafficLog(opened, self._read)

    def _collected(self, log: TrafficLog) -> Collected:
        groups, series = list(self._counters), log.series()
        return Collected(
            tables={"series": series},
            notes=[*([] if series.is_empty() else [WHOLE_MACHINE]), *log.notes()],
            detail=DramDetail(
                pmus=sorted({group.pmu for group in groups}),
                counters=sum(len(group.parts) for group in groups),
                events={name: [event.name for event in events] for name, events in self._events().items()},
                period_ms=round(self._period_s * 1e3, 3),
                reading_us=log.reading_us(),
            ),
        )

    def _close(self, log: TrafficLog) -> None:
        for fds in self._counters.values():
            perf_event.close_group(fds)
        self._counters.clear()

    def _affordable_s(self, plan: Plan) -> float:
        """The period at which reading takes no more than ``SHARE`` of a processor."""
        trial = TrafficLog(plan, self._read)
        for _ in range(TRIALS):
            trial.sample()
        return max(PERIOD_S, (trial.reading_us() or 0) / 1e6 / SHARE)

    def _read(self, group: Group) -> Reading:
        return perf_event.read_group(self._counters[group][0], len(group.parts))

    def _plan(self) -> Plan:
        return make_plan(self._root, self._events())

    def _events(self) -> dict[str, list[Event]]:
        kind = self._kind()
        return dram_events(kind.catalogue) if kind else {}

    def _kind(self) -> Microarchitecture | None:
        """The processor's file of the catalogue, of a hybrid's files the one that has memory controllers."""
        cores = core_kinds(self._root, machine.cpuinfo(self._root).identity, [])
        kinds = [kind for core in cores if (kind := microarchitecture(core.microarchitecture)) is not None]
        return next((kind for kind in kinds if dram_events(kind.catalogue)), kinds[0] if kinds else None)

    def _why_none(self, plan: Plan) -> Availability:
        hypervisor = machine.hypervisor(self._root)
        if hypervisor is not None and not plan.groups:
            name = "" if hypervisor == "unknown" else f" ({hypervisor})"
            reason = f"a virtual machine{name} does not show the memory controllers' counters"
            return Availability.no(reason, "measure DRAM traffic on the machine itself")
        kind = self._kind()
        if kind is None:
            processor = machine.cpuinfo(self._root).processor
            return Availability.no(f"the event catalogue does not know this processor ({processor})")
        if not self._events():
            reason = f"the event catalogue has no memory controllers' events of {kind.processor.name}"
            return Availability.no(reason)
        why = next(iter(plan.missing.values()))
        return Availability(why)

    def _why_refused(self, error: OSError) -> Availability:
        level = perf_event.paranoid_level(self._root)
        if error.errno == errno.EACCES and level is not None and level > 0:
            return Availability.no(
                f"kernel.perf_event_paranoid is {level}: ordinary users may not count what all programs do",
                ALLOW_SOCKETS,
            )
        why = permission.why_not_allowed(error, self._root)
        return Availability(why)
