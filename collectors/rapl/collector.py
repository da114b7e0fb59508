"""The RAPL collector: the energy counters of Intel and AMD processors, through powercap or perf.

The counters belong to the whole machine (a package, its cores, its memory, the platform) and refresh about every
millisecond; a thread in the supervisor samples them and keeps joules since the first reading.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from collectors.rapl.energy_log import EnergyLog, Meter, Pace
from collectors.rapl.power_pmu import find_domains
from collectors.rapl.powercap import GRANT_READING, LOAD_DRIVER, find_zones
from collectors.shared.periodic_sampling import PeriodicCollector
from hwprof.collector.contract import Availability, Collected, Note, NoteKind, PassContext, Unavailable
from hwprof.hardware import machine
from hwprof.run.details import EnergyDetail

WATCHED_S: Final = 0.020
"""At the begin, to see how often the counters change: some twenty refreshes."""

LONGEST_S: Final = 0.010
"""Between two samples, where they do not change oftener, or nobody saw them change."""

WAKING_NS: Final = 50_000
"""Processor time that waking up for a sample takes at most, beside the reading itself (measured: 20 to 40 us)."""

MOST_CPU: Final = 0.01
"""Of the machine's processors, that reading may take."""

ALLOW_PERF: Final = "sudo sysctl kernel.perf_event_paranoid=0"

ELSEWHERE: Final = "measure on the machine itself, or with a power meter (--power-command)"

BY_ROOT: Final = Unavailable(
    "the energy counters are readable by root only", f"{GRANT_READING} (until the next boot; a udev rule makes it last)"
)
NOT_ALLOWED: Final = Unavailable("ordinary users may not read energy through perf here", ALLOW_PERF)


class RaplCollector(PeriodicCollector[EnergyLog]):
    """Samples the energy counters of the machine as often as they change, for 1% of its processors at most."""

    def __init__(self, root: Path = machine.ROOT) -> None:
        super().__init__()
        self._root = root
        self._period_s = LONGEST_S
        self._pace = Pace({}, 0.0)

    def availability(self) -> Availability:
        """Whether there is a counter that this user may read; reads each once."""
        opened, refused = self._open_meters()
        for meter in opened:
            meter.close()
        if not opened:
            return self._why_none()
        why = Unavailable("readable by root only", GRANT_READING)
        notes = (Note.not_available(", ".join(refused), why),) if refused else ()
        return Availability(detail=EnergyDetail(zones=[meter.name for meter in opened]), notes=notes)

    def _open_meters(self) -> tuple[list[Meter], list[str]]:
        """Those that can be read, opened: powercap's, else perf's, which tells of the same silicon; and the zones
        of the same kind that are refused."""
        for meters in (find_zones(self._root), find_domains(self._root)):
            opened: list[Meter] = [meter for meter in meters if _opens(meter)]
            if opened:
                return opened, [meter.name for meter in meters if meter not in opened]
        return [], []

    def _why_none(self) -> Availability:
        if zones := find_zones(self._root):
            return Availability(BY_ROOT, detail=EnergyDetail(zones=[zone.name for zone in zones]))
        if domains := find_domains(self._root):
            return Availability(NOT_ALLOWED, detail=EnergyDetail(zones=[domain.name for domain in domains]))
        hypervisor = machine.hypervisor(self._root)
        if hypervisor is not None:
            name = "" if hypervisor == "unknown" else f" ({hypervisor})"
            return Availability.no(f"a virtual machine{name} has no energy counters", ELSEWHERE)
        if machine.cpuinfo(self._root).vendor not in ("GenuineIntel", "AuthenticAMD", "HygonGenuine"):
            return Availability.no("only Intel and AMD processors have RAPL energy counters")
        return Availability.no("the kernel's powercap driver for RAPL is not loaded", LOAD_DRIVER)

    def _open(self, context: PassContext) -> EnergyLog:
        log = EnergyLog(self._open_meters()[0])
        self._pace = log.watch(WATCHED_S)
        given_ms = context.options.get("power_period")
        self._period_s = given_ms / 1e3 if given_ms else period_s(self._pace, os.cpu_count() or 1)
        return log

    def _collected(self, log: EnergyLog) -> Collected:
        if not log.meters:
            why = Unavailable("no energy counter could be opened", GRANT_READING)
            return Collected(notes=[Note.not_available("energy", why)])
        still = log.still()
        moving = [meter.name for meter in log.meters if meter.name not in still]
        scope = Note(NoteKind.SCOPE, "the whole machine's: other programs and the idle processor are in it", "energy")
        return Collected(
            tables={"series": log.series()} if moving else {},
            notes=[
                *([scope] if moving else []),
                *(Note.not_available(f"energy of {name}", self._why_still()) for name in still),
                *(
                    Note(NoteKind.INCOMPLETE, f"could not be read any more: {reason}", name)
                    for name, reason in log.failures.items()
                ),
            ],
            detail=EnergyDetail(
                zones=moving,
                period_ms=self._period_s * 1e3,
                refresh_ms={name: round(ns / 1e6, 3) for name, ns in self._pace.refresh_ns.items()},
                reading_us=self._pace.reading_cpu_ns / 1e3,
            ),
        )

    def _why_still(self) -> Unavailable:
        if machine.hypervisor(self._root) is not None:
            return Unavailable(
                "its counter stands still: this virtual machine shows it, and nothing moves it", ELSEWHERE
            )
        return Unavailable("its counter stands still", ELSEWHERE)

    def _close(self, log: EnergyLog) -> None:
        for meter in log.meters:
            meter.close()


def period_s(pace: Pace, processors: int) -> float:
    """Between two samples: as often as the quickest counter changes, as far as ``MOST_CPU`` allows."""
    refresh_ns = min(pace.refresh_ns.values(), default=LONGEST_S * 1e9)
    affordable_ns = (pace.reading_cpu_ns + WAKING_NS) / (MOST_CPU * processors)
    return min(max(refresh_ns, affordable_ns), max(LONGEST_S * 1e9, refresh_ns)) / 1e9


def _opens(meter: Meter) -> bool:
    """Whether it can be read; it is open then."""
    try:
        meter.open()
        meter.joules()
    except (OSError, ValueError):
        meter.close()
        return False
    return True
