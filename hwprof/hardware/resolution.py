"""From an event's description to what the kernel is asked for, on one kind of core or on the PMUs outside of cores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import msgspec

from hwprof.hardware.catalogue import GENERIC, Event, Microarchitecture, Recipe, catalogue, microarchitecture
from hwprof.hardware.cores import DEVICES
from hwprof.hardware.countable import Countable
from hwprof.hardware.metrics import recipes
from hwprof.hardware.perf_event import TYPE_HARDWARE, TYPE_HARDWARE_CACHE
from hwprof.hardware.pmu import Code, EncodingError, Pmu, find
from hwprof.hardware.syntax import Request, raw_code
from hwprof.run.manifest import CoreKind, Machine
from hwprof.unavailable import Unavailable

_EXTENDED_TYPE_SHIFT: Final = 32
"""Where a general hardware event names the PMU of one kind of core (PERF_PMU_TYPE_SHIFT)."""

ON_PAPER: Final = Code(-1, 0)
"""The code of an event that is looked at and never opened, on a PMU that is not there."""

DRIVERS: Final = {"uncore": "intel_uncore", "amd": "amd_uncore"}
"""The kernel's module behind PMUs outside of cores, by the beginning of their names."""


class Kind:
    """One kind of core: its PMU in sysfs and what the catalogue knows of it.

    ``on_paper``: events of the catalogue are resolved also where there is no PMU, with a code that nothing opens.
    """

    def __init__(self, core: CoreKind, machine: Machine, root: Path, *, on_paper: bool = False) -> None:
        self._machine = machine
        self._root = root
        self._on_paper = on_paper
        self._several = len(machine.cores) > 1
        self.core = core
        self.known: Microarchitecture | None = microarchitecture(core.microarchitecture)
        folder = root / DEVICES / (core.pmu or "")
        self.pmu = Pmu(folder) if core.pmu is not None and folder.is_dir() else None

    @property
    def pmu_name(self) -> str:
        """The PMU's name; where the kernel shows none, what it is called elsewhere."""
        return self.core.pmu or (self.known.processor.pmu if self.known else "cpu")

    def is_called(self, pmu: str) -> bool:
        """Whether perf means these cores by that PMU: ``cpu`` is any kind of core of a hybrid processor."""
        return self.pmu_name == pmu or self.pmu_name.startswith(f"{pmu}_")

    @property
    def title(self) -> str:
        """The kind of core as people call it."""
        return self.known.processor.name if self.known else self._machine.processor

    @cached_property
    def events(self) -> Mapping[str, Event]:
        """By name and alias: the processor's own events, then the general ones."""
        own = self.known.catalogue.named() if self.known else {}
        return catalogue(GENERIC).named() | own

    @cached_property
    def recipes(self) -> Mapping[str, Recipe]:
        """How metrics follow from these."""
        return recipes(self.known)

    def countable(self, event: Event, name: str, request: Request | None = None) -> Countable | Unavailable:
        """The event on this kind of core under that name."""
        code = self.code(event)
        if isinstance(code, Unavailable):
            return code
        return Countable(
            name=name,
            event=event,
            code=code,
            meaning=self._meaning(event),
            pmu=None if event.kind == "software" else self.pmu_name,
            fixed=event.kind == "hardware" and self._is_fixed(event),
            exclude_user=request is not None and request.exclude_user,
            exclude_kernel=request is not None and request.exclude_kernel,
        )

    def code(self, event: Event) -> Code | Unavailable:
        """What the kernel calls the event here."""
        if event.type is not None and event.config is not None:
            general = event.type in (TYPE_HARDWARE, TYPE_HARDWARE_CACHE)
            if self._several and general and self.pmu is not None and self.pmu.type is not None:
                return Code(event.type, self.pmu.type << _EXTENDED_TYPE_SHIFT | event.config)
            return Code(event.type, event.config)
        if self.pmu is None:
            return ON_PAPER if self._on_paper else no_pmu(self.pmu_name)
        try:
            return self.pmu.encode(event.code or "")
        except EncodingError as error:
            return Unavailable(error.message, error.remedy)

    def raw(self, config: int) -> Event | Unavailable:
        """A raw code as an event."""
        return self._no_pmu() if self.pmu is None else self._described(f"config={config:#x}")

    def terms(self, terms: str) -> Event | Unavailable:
        """perf's terms as an event; a single one may be a name of the catalogue's or a raw code. Raises
        ``EncodingError`` for those that the PMU does not have."""
        config = raw_code(terms)
        if config is not None:
            return self.raw(config)
        named = self.events.get(terms.lower())
        if named is not None and named.kind == "hardware" and named.pmu is None:
            return named
        return self._no_pmu() if self.pmu is None else self._described(terms)

    def _no_pmu(self) -> Unavailable:
        """Why perf's terms cannot be understood where sysfs describes no such PMU."""
        return no_pmu(self.pmu_name, self._root)

    def _described(self, terms: str) -> Event:
        """An event that the user gave as terms, with what the catalogue knows of it: its counters, at the least."""
        assert self.pmu is not None
        code = self.pmu.encode(terms)
        relatives = [event for event in self.events.values() if event.code is not None and event.pmu is None]
        for event in relatives:
            if self.code(event) == code:
                return msgspec.structs.replace(event, aliases=())
        event = Event(
            name=terms, code=terms, meaning=f"{self.pmu.name}/{terms}/, as given: the catalogue has no such event"
        )
        select = self.pmu.gather("event", code)
        for relative in relatives if select else ():
            other = self.code(relative)
            if isinstance(other, Code) and self.pmu.gather("event", other) == select:
                return msgspec.structs.replace(event, counters=relative.counters, only=relative.only)
        return event

    def _meaning(self, event: Event) -> str:
        text = event.info(self._machine).meaning
        cores, threads = self._machine.physical_cores, self._machine.logical_processors
        if event.scope == "core" and cores is not None and cores < threads:
            return f"{text} (of the whole core: both of its hardware threads)"
        return text

    def _is_fixed(self, event: Event) -> bool:
        own = self.known.processor.fixed if self.known else ()
        return event.counters == 0 or any(name in own for name in (event.name, *event.aliases))


@dataclass(frozen=True)
class Elsewhere:
    """PMUs outside of cores."""

    root: Path
    on_paper: bool = False  # as with ``Kind``

    def countables(self, event: Event, name: str, request: Request | None = None) -> list[Countable] | Unavailable:
        """The event on every instance of its PMU; all have the same name, and are to be summed."""
        pmus = find(self.root, event.pmu or "")
        try:
            places = [(pmu.name, pmu.encode(event.code or "")) for pmu in pmus]
        except EncodingError as error:
            return Unavailable(error.message, error.remedy)
        if not places and self.on_paper:
            places = [(event.pmu or "", ON_PAPER)]
        if not places:
            return no_pmu(event.pmu or "")
        return [
            Countable(
                name=name,
                event=event,
                code=code,
                meaning=event.meaning,
                pmu=pmu,
                exclude_user=request is not None and request.exclude_user,
                exclude_kernel=request is not None and request.exclude_kernel,
            )
            for pmu, code in places
        ]

    def terms(self, pmu_name: str, terms: str) -> Event | Unavailable:
        """perf's terms for such a PMU as an event. Raises ``EncodingError`` for terms that it does not have."""
        pmus = find(self.root, pmu_name)
        if not pmus:
            return no_pmu(pmu_name, self.root)
        pmus[0].encode(terms)
        scale = pmus[0].scale(terms)
        worth = "" if scale == 1 else f"; one count is {scale:g} {pmus[0].unit(terms) or ''}".rstrip()
        return Event(
            name=f"{pmu_name}/{terms}/",
            code=terms,
            pmu=pmu_name,
            scope="socket" if pmus[0].cpumask else "thread",
            meaning=f"{pmu_name}/{terms}/, as given{worth}",
        )


def no_pmu(name: str, root: Path | None = None) -> Unavailable:
    """Why nothing can be counted on a PMU that sysfs does not show. With ``root``, the PMUs that it shows are named."""
    driver = DRIVERS.get(name.partition("_")[0])
    if driver:
        remedy = f"sudo modprobe {driver}; virtual machines are rarely shown one"
    elif root is None:
        remedy = "hwprof doctor says what would change that"
    elif not (root / DEVICES).is_dir():
        return Unavailable(
            "perf's terms need the PMU's description in sysfs, and there is none", "ask for events by name"
        )
    else:
        there = sorted(entry.name for entry in (root / DEVICES).iterdir())
        remedy = f"one of {', '.join(there)}; hwprof doctor says more"
    return Unavailable(f"the kernel shows no PMU called {name}", remedy)
