"""RAPL through perf: the PMU ``power``, which the kernel lets whoever may count the whole machine read, without root.

Its events are the processor's energy counters, one for each package, on the processor that stands for it. The kernel
adds up what the hardware's wrap, so values only grow; one count is worth what the file beside the event says.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hwprof.hardware import machine, perf_event
from hwprof.hardware.machine import package_of
from hwprof.hardware.pmu import Code, EncodingError, Pmu, find

PMU: Final = "power"

PARTS: Final = {"energy-pkg": None, "energy-cores": "core", "energy-gpu": "uncore", "energy-ram": "dram"}
"""The driver's events, and what powercap calls the same: a part of the package, or all of it."""

PLATFORM: Final = {"energy-psys": "psys"}
"""Those of the whole machine: any package's counter tells it."""

UNIT: Final = "Joules"


class Domain:
    """One energy counter of a package, a ``Meter``."""

    def __init__(self, name: str, code: Code, cpu: int, joules_per_count: float) -> None:
        self.name = name
        self._code = code
        self._cpu = cpu
        self._joules_per_count = joules_per_count
        self._descriptor: int | None = None
        self._first: int | None = None

    def open(self) -> None:
        """The driver refuses events that leave out user or kernel code: energy is nobody's. Raises ``OSError``."""
        attributes = perf_event.Attributes(
            self._code.type, self._code.config, config1=self._code.config1, config2=self._code.config2
        )
        self._descriptor = perf_event.open_event(attributes, perf_event.EVERY_PROCESS, cpu=self._cpu)
        self._first = None
        perf_event.enable_group(self._descriptor)

    def joules(self) -> float:
        """Since the first reading. Raises ``OSError``."""
        assert self._descriptor is not None, "open comes first"
        _, _, (value,) = perf_event.read_group(self._descriptor, 1)
        if self._first is None:
            self._first = value
        return (value - self._first) * self._joules_per_count

    def close(self) -> None:
        """Gives its descriptor back."""
        if self._descriptor is not None:
            perf_event.close_group([self._descriptor])
            self._descriptor = None


def find_domains(root: Path = machine.ROOT) -> list[Domain]:
    """Every energy counter that the PMU has, by package; none where there is no such PMU, or its units are others."""
    return [domain for pmu in find(root, PMU) for domain in _domains(root, pmu)]


def _domains(root: Path, pmu: Pmu) -> list[Domain]:
    found: dict[str, Domain] = {}
    for cpu in pmu.cpumask:
        package = package_of(cpu, root)
        own = f"package-{package}" if package is not None else f"package of processor {cpu}"
        names = {event: f"{own}/{part}" if part else own for event, part in PARTS.items()}
        for event in sorted(pmu.events.keys() & {*PARTS, *PLATFORM}):
            name = PLATFORM.get(event) or names[event]
            if name in found and event in PARTS:  # a package of several dies
                name = f"{name} (processor {cpu})"
            domain = _domain(pmu, event, name, cpu)
            if domain is not None:
                found.setdefault(name, domain)
    return list(found.values())


def _domain(pmu: Pmu, event: str, name: str, cpu: int) -> Domain | None:
    """None where the driver describes the event in a way that is not known."""
    if pmu.unit(event) != UNIT:
        return None
    try:
        return Domain(name, pmu.encode(pmu.events[event]), cpu, pmu.scale(event))
    except (EncodingError, ValueError):
        return None
