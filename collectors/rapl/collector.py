"""The RAPL collector: energy counters of Intel and AMD processors through the kernel's powercap interface.

The counters belong to the whole machine (a package, its cores, its memory, the platform), refresh about every
millisecond and wrap; a thread in the supervisor samples them and keeps joules since the first reading.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from collectors.shared.periodic_sampling import PeriodicCollector
from hwprof.collector.contract import Availability, Collected, Note, NoteKind, PassContext, Unavailable
from hwprof.hardware import machine
from hwprof.run.details import EnergyDetail
from hwprof.run.schema import conform

POWERCAP = Path("/sys/class/powercap")
PERIOD_S = 0.010
"""Between two samples: ten refreshes of the counter, so that its own grain is a tenth of a sample."""

GRANT_READING = "sudo chmod -R a+r /sys/class/powercap/intel-rapl/"
LOAD_DRIVER = "sudo modprobe intel_rapl_msr"


@dataclass(frozen=True)
class Zone:
    """One energy counter of powercap."""

    name: str  # unique: package-0, package-0/core, package-0/dram, psys
    folder: Path
    max_uj: int  # the counter counts from 0 up to this, then starts again

    @property
    def counter(self) -> Path:
        """The file with the counter's value in microjoules."""
        return self.folder / "energy_uj"


@dataclass
class Unwrapped:
    """A cumulative counter made of one that wraps: joules since the first value."""

    max_uj: int
    last_uj: int | None = None
    total_uj: int = 0

    def add(self, value_uj: int) -> float:
        """The joules since the first value, after another one less than a full turn later.

        The counter runs from 0 to ``max_uj`` inclusive. Where the kernel gives no range (0), a counter that goes back
        is taken to have started again at 0.
        """
        if self.last_uj is not None:
            step = value_uj - self.last_uj
            if step < 0:
                step = step + self.max_uj + 1 if self.max_uj >= self.last_uj else value_uj
            self.total_uj += step
        self.last_uj = value_uj
        return self.total_uj / 1e6


def find_zones(powercap: Path = POWERCAP) -> list[Zone]:
    """Every energy counter below ``powercap``: packages, what they contain, the platform.

    On Intel the same package may appear under ``intel-rapl`` and ``intel-rapl-mmio``: the second is the same silicon,
    so it is left out. Names that occur twice (two sockets' ``dram``) are distinguished by the zone that contains them.
    """
    folders = sorted(
        (folder for folder in powercap.glob("*-rapl:*") if (folder / "energy_uj").exists()),
        key=lambda folder: [int(part) for part in folder.name.split(":")[1:]],
    )
    named = [(folder, _own_name(folder)) for folder in folders]
    by_folder = {folder.name: name for folder, name in named}
    full = []
    for folder, name in named:
        parent = by_folder.get(folder.name.rpartition(":")[0])
        full.append(f"{parent}/{name}" if parent else name)
    seen = Counter(full)
    return [
        Zone(name if seen[name] == 1 else f"{name} ({folder.name})", folder, _number(folder / "max_energy_range_uj"))
        for (folder, _), name in zip(named, full, strict=True)
    ]


@dataclass
class EnergyLog:
    """The samples of every zone: times and joules since the first reading."""

    zones: list[Zone]
    read: Callable[[Zone], int]
    clock_ns: Callable[[], int] = time.monotonic_ns
    times_ns: dict[str, list[int]] = field(default_factory=dict)
    joules: dict[str, list[float]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._unwrapped = {zone.name: Unwrapped(zone.max_uj) for zone in self.zones}
        for zone in self.zones:
            self.times_ns[zone.name] = []
            self.joules[zone.name] = []

    def sample(self) -> bool:
        """Reads every zone once, each with its own time; one that cannot be read is given up. Whether any is left."""
        for zone in self.zones:
            if zone.name in self.failures:
                continue
            try:
                value_uj = self.read(zone)
            except (OSError, ValueError) as error:
                self.failures[zone.name] = str(error)
                continue
            self.times_ns[zone.name].append(self.clock_ns())
            self.joules[zone.name].append(self._unwrapped[zone.name].add(value_uj))
        return len(self.failures) < len(self.zones)

    def series(self) -> pl.DataFrame:
        """Rows of ``series``, by time: ``energy/<zone>`` in joules, from 0."""
        frames = [
            pl.DataFrame(
                {"time_ns": self.times_ns[zone.name], "value": self.joules[zone.name]},
                schema={"time_ns": pl.Int64, "value": pl.Float64},
            ).with_columns(name=pl.lit(f"energy/{zone.name}"), unit=pl.lit("J"))
            for zone in self.zones
        ]
        return conform("series", pl.concat(frames).sort("time_ns", maintain_order=True))


class RaplCollector(PeriodicCollector[EnergyLog]):
    """Samples the energy counters of the machine every 10 ms."""

    _period_s = PERIOD_S

    def __init__(self, root: Path = machine.ROOT) -> None:
        super().__init__()
        self._root = root
        self._powercap = root / POWERCAP.relative_to("/")
        self._files: dict[str, int] = {}

    def availability(self) -> Availability:
        """Whether there is a zone that this user may read."""
        zones = find_zones(self._powercap)
        if not zones:
            return self._no_zones()
        readable, refused = [], []
        for zone in zones:
            try:
                zone.counter.read_bytes()
                readable.append(zone.name)
            except OSError:
                refused.append(zone.name)
        if not readable:
            return Availability(
                Unavailable(
                    "the energy counters are readable by root only",
                    f"{GRANT_READING} (until the next boot; a udev rule makes it last)",
                ),
                detail=EnergyDetail(zones=refused),
            )
        why = Unavailable("readable by root only", GRANT_READING)
        notes = (Note.not_available(", ".join(refused), why),) if refused else ()
        return Availability(detail=EnergyDetail(zones=readable), notes=notes)

    def _no_zones(self) -> Availability:
        hypervisor = machine.hypervisor(self._root)
        if hypervisor is not None:
            name = "" if hypervisor == "unknown" else f" ({hypervisor})"
            return Availability.no(
                f"a virtual machine{name} has no energy counters", "measure energy on the machine itself"
            )
        if machine.cpuinfo(self._root).vendor not in ("GenuineIntel", "AuthenticAMD", "HygonGenuine"):
            return Availability.no("only Intel and AMD processors have RAPL energy counters")
        return Availability.no("the kernel's powercap driver for RAPL is not loaded", LOAD_DRIVER)

    def _open(self, context: PassContext) -> EnergyLog:
        zones = []
        for zone in find_zones(self._powercap):
            try:
                self._files[zone.name] = os.open(zone.counter, os.O_RDONLY | os.O_CLOEXEC)
                zones.append(zone)
            except OSError:
                continue
        return EnergyLog(zones, self._read)

    def _collected(self, log: EnergyLog) -> Collected:
        if not log.zones:
            why = Unavailable("no energy counter could be opened", GRANT_READING)
            return Collected(notes=[Note.not_available("energy", why)])
        return Collected(
            tables={"series": log.series()},
            notes=[
                Note(NoteKind.SCOPE, "the whole machine's: other programs and the idle processor are in it", "energy"),
                *(
                    Note(NoteKind.INCOMPLETE, f"could not be read any more: {reason}", name)
                    for name, reason in log.failures.items()
                ),
            ],
            detail=EnergyDetail(zones=[zone.name for zone in log.zones], period_ms=self._period_s * 1e3),
        )

    def _close(self, log: EnergyLog) -> None:
        for handle in self._files.values():
            os.close(handle)
        self._files.clear()

    def _read(self, zone: Zone) -> int:
        return int(os.pread(self._files[zone.name], 64, 0))


def _own_name(folder: Path) -> str:
    try:
        return (folder / "name").read_text().strip()
    except OSError:
        return folder.name


def _number(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return 0
