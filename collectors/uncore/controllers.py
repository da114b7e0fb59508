"""The memory controllers' counters: which there are on this machine, and how they are opened.

A controller (``uncore_imc_3``, ``amd_umc_7``) is a PMU of its own. It counts for every program, so its events are
opened not on threads but on the processor that the kernel names for its socket.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hwprof.hardware import perf_event
from hwprof.hardware.catalogue import Catalogue, Event, Recipe
from hwprof.hardware.machine import package_of
from hwprof.hardware.metrics import operands
from hwprof.hardware.pmu import Code, EncodingError, Pmu, find
from hwprof.hardware.resolution import no_pmu
from hwprof.unavailable import Unavailable

READ: Final = "uncore/dram-read"
WRITE: Final = "uncore/dram-write"
TOTAL: Final = "uncore/dram-total"
"""Only where the processor does not count reads and writes separately."""

_DIRECTIONS: Final = {"uncore_dram_read_gbytes": READ, "uncore_dram_write_gbytes": WRITE}
_TOGETHER: Final = {"uncore_dram_gbytes": TOTAL}

_GROUP_EVENTS: Final = 4
"""Events that are counted together: controllers have as many counters, and older drivers take groups that never fit."""

_UNIT_BYTES: Final = {"B": 1, "Bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


@dataclass(frozen=True)
class Part:
    """One event of a controller, and what its counts add to."""

    code: Code
    bytes_per_count: float
    series: tuple[str, ...]  # the whole machine's, and with several sockets its own socket's


@dataclass(frozen=True)
class Group:
    """Events of one controller that are counted at the same time, on the processor that stands for its socket."""

    pmu: str
    cpu: int
    parts: tuple[Part, ...]

    def __str__(self) -> str:
        return f"{self.pmu} on processor {self.cpu}"

    @property
    def series(self) -> tuple[str, ...]:
        """All that it adds to."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.series))


@dataclass(frozen=True)
class Plan:
    """What is counted. ``missing``: series -> why it cannot be had; a sum that lacks one of its terms is none."""

    groups: tuple[Group, ...] = ()
    missing: dict[str, Unavailable] = field(default_factory=dict)

    @property
    def series(self) -> tuple[str, ...]:
        """The series that can be had, the whole machine's before the sockets'."""
        names = {name for group in self.groups for name in group.series} - set(self.missing)
        return tuple(sorted(names, key=lambda name: (name.count("/"), name)))


def dram_recipes(file: Catalogue) -> dict[str, Recipe]:
    """Series -> the processor's metric whose events add up to it; empty where the catalogue has none."""
    recipes = file.recipes
    directions = _DIRECTIONS if recipes.keys() & _DIRECTIONS.keys() else _TOGETHER
    return {series: recipes[metric] for metric, series in directions.items() if metric in recipes}


def dram_events(file: Catalogue) -> dict[str, list[Event]]:
    """Series -> the events that add up to it. Each one's ``weight`` is bytes."""
    named = file.named()
    return {series: [named[event] for event in operands(recipe.of)] for series, recipe in dram_recipes(file).items()}


def make_plan(root: Path, events: Mapping[str, Sequence[Event]]) -> Plan:
    """Those events on every controller of the machine whose sysfs lies below ``root``."""
    missing: dict[str, Unavailable] = {}
    found: list[tuple[str, Pmu, Code, float]] = []
    for series, terms in events.items():
        for event in terms:
            pmus = [pmu for pmu in find(root, event.pmu or "") if pmu.cpumask]
            if not pmus:
                missing[series] = no_pmu(event.pmu or "")
            try:
                found += [(series, pmu, pmu.encode(event.code or ""), bytes_per_count(pmu, event)) for pmu in pmus]
            except EncodingError as error:
                missing[series] = Unavailable(error.message, error.remedy)
    return Plan(_groups(found, root), missing)


def bytes_per_count(pmu: Pmu, event: Event) -> float:
    """The driver's own scale where the event is one that the driver names, else the catalogue's weight."""
    name = event.code or ""
    unit = pmu.unit(name) if name in pmu.events else None
    return pmu.scale(name) * _UNIT_BYTES[unit] if unit in _UNIT_BYTES else event.weight


def _groups(found: Sequence[tuple[str, Pmu, Code, float]], root: Path) -> tuple[Group, ...]:
    """By controller and socket."""
    sockets = {cpu: package_of(cpu, root) for _, pmu, _, _ in found for cpu in pmu.cpumask}
    several = len(set(sockets.values())) > 1 and None not in sockets.values()
    controllers: dict[tuple[str, int], list[Part]] = {}
    for series, pmu, code, weight in found:
        for cpu in pmu.cpumask:
            names = (series, f"{series}/socket-{sockets[cpu]}") if several else (series,)
            controllers.setdefault((pmu.name, cpu), []).append(Part(code, weight, names))
    return tuple(
        Group(pmu, cpu, tuple(parts[first : first + _GROUP_EVENTS]))
        for (pmu, cpu), parts in controllers.items()
        for first in range(0, len(parts), _GROUP_EVENTS)
    )


def open_group(group: Group) -> list[int]:
    """Descriptors of counters that stand still, the leader's first. Raises ``OSError``, with nothing left open."""
    attributes = [
        perf_event.Attributes(
            part.code.type,
            part.code.config,
            config1=part.code.config1,
            config2=part.code.config2,
            disabled=number == 0,
        )
        for number, part in enumerate(group.parts)
    ]
    return perf_event.open_group(attributes, perf_event.EVERY_PROCESS, cpu=group.cpu)
