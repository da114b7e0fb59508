"""The event catalogue: what can be counted, how the kernel is asked for it, what it means, and what follows from it.

It is data, one file for each microarchitecture (``events/*.toml``; ``events/README.md`` documents the fields): adding a
processor is adding a file. This module only reads the files; ``cores`` finds the ones that describe this machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final, Literal

import msgspec

from hwprof.data_files import read_toml
from hwprof.run.manifest import EventInfo, Machine

GENERIC: Final = "kernel"
"""The file of the events that the kernel names on every processor."""

PAPI: Final = "papi"
"""The file of PAPI's presets."""

Scope = Literal["thread", "core", "socket"]


class Mapping(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a generic event's name stands for on the processors that fulfil all the given conditions."""

    meaning: str
    vendor: str | None = None
    families: tuple[int, ...] | None = None
    pmu: str | None = None
    code: int | None = None  # as a raw event

    def applies_to(self, machine: Machine) -> bool:
        """Whether every condition that is given holds."""
        return (
            (self.vendor is None or machine.vendor == self.vendor)
            and (self.families is None or machine.family in self.families)
            and (self.pmu is None or any(name.startswith(self.pmu) for name in machine.pmus))
        )


class Event(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One event. Either ``type`` and ``config`` (the kernel's generic events) or ``code`` (perf's terms) encodes it."""

    name: str
    meaning: str
    kind: Literal["hardware", "software"] = "hardware"
    unit: str = "1"  # of one count times ``weight``
    weight: int = 1
    aliases: tuple[str, ...] = ()
    type: int | None = None
    config: int | None = None
    code: str | None = None  # "event=0xc7,umask=0x80"; PAPI: the preset's name
    pmu: str | None = None  # prefix of the PMUs' names where it is not the core's own
    scope: Scope = "thread"
    counters: int = 1  # general counters that it takes; 0: it has one of its own
    only: tuple[int, ...] = ()  # the general counters that it can be on; none given: any
    leader: str | None = None  # the event that must lead its group
    precision: str | None = None  # floating-point events: half, bfloat16, single, double, …
    width: int | None = None  # of the vectors, in bits; 0: scalar
    default: bool = False  # software events: counted along in any case
    busy_loop_moves: bool = False
    kernel_only: bool = False
    on: tuple[Mapping, ...] = ()
    caveat: str | None = None
    source: str | None = None

    def info(self, machine: Machine) -> EventInfo:
        """The event as the manifest keeps it, with its meaning on that machine."""
        meaning = next((mapping.meaning for mapping in self.on if mapping.applies_to(machine)), self.meaning)
        return EventInfo(name=self.name, meaning=meaning, unit=self.unit, kind=self.kind)


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a metric follows from events on one microarchitecture: ``scale`` × ``of`` / ``per``.

    Both parts are SQL arithmetic over event names, and kept apart because a hybrid processor's kinds of core are summed
    before they are divided.
    """

    name: str
    of: str
    per: str | None = None
    scale: float = 1
    portable: bool = False  # generic: holds on every processor whose own file has no other recipe
    meaning: str | None = None
    caveat: str | None = None
    source: str | None = None


ARM: Final = 0x41
"""Who makes Arm's own cores, in an identification register (MIDR)."""


class Match(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which processors a file describes: an x86 family with inclusive ranges of models, or an Arm part number."""

    family: int | None = None
    models: tuple[tuple[int, int], ...] = ()
    part: int | None = None
    implementer: int = ARM  # of an Arm part: whoever builds Arm's core under a number of their own
    revisions: tuple[tuple[int, int], ...] = ()  # of an Arm part, inclusive, 0x03 for r0p3; none given: all
    pmu: str | None = None  # the PMU's name on these models where it is not the file's


class Processor(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A microarchitecture's counters."""

    name: str
    vendor: str
    matches: tuple[Match, ...]
    pmu: str  # name in sysfs, or the beginning of it
    general_counters: int
    general_counters_without_smt: int | None = None
    fixed: tuple[str, ...] = ()  # events with a counter of their own
    notes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


class Catalogue(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One file: events in the order in which they are counted and shown, and the metrics that follow from them."""

    based_on: str | None = None  # the file whose events and metrics these are, but for those of the same names here
    without: tuple[str, ...] = ()  # events of that file that this processor does not have
    event: tuple[Event, ...] = ()
    metric: tuple[Recipe, ...] = ()
    processor: Processor | None = None

    @property
    def events(self) -> tuple[Event, ...]:
        """All events."""
        return self.event

    @property
    def recipes(self) -> dict[str, Recipe]:
        """The metrics by name."""
        return {recipe.name: recipe for recipe in self.metric}

    def named(self) -> dict[str, Event]:
        """The events by name and alias."""
        return {name: event for event in self.event for name in (event.name, *event.aliases)}

    def defaults(self) -> tuple[Event, ...]:
        """The software events, which are counted along whatever the user asks for."""
        return tuple(event for event in self.event if event.default)


FILE: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
"""A processor's id is its file's name, and no path: a run of another machine says it."""


@cache
def catalogue(name: str = GENERIC) -> Catalogue:
    """The file of that name, with what it takes over from the one that it is based on; raises ``KeyError`` where there
    is none."""
    if not FILE.fullmatch(name):
        raise KeyError(name)
    try:
        own = read_toml(__name__, f"events/{name}.toml", Catalogue)
    except FileNotFoundError:
        raise KeyError(name) from None
    if own.based_on is None:
        return own
    base = catalogue(own.based_on)
    events = {event.name: event for event in base.event if event.name not in own.without}
    return msgspec.structs.replace(
        own,
        event=tuple((events | {event.name: event for event in own.event}).values()),
        metric=tuple((base.recipes | own.recipes).values()),
    )


@dataclass(frozen=True)
class Microarchitecture:
    """A processor file with its id, which is the file's name."""

    id: str
    processor: Processor

    @property
    def catalogue(self) -> Catalogue:
        """The whole file."""
        return catalogue(self.id)


class _Head(msgspec.Struct, frozen=True):
    """What stands in a file before its first event: to find the processor's own file among all takes no more."""

    processor: Processor | None = None


@cache
def microarchitecture(name: str | None) -> Microarchitecture | None:
    """The processor of that id; None where the catalogue describes none such."""
    if name is None or not FILE.fullmatch(name):
        return None
    try:
        processor = read_toml(__name__, f"events/{name}.toml", _Head, until="\n[[").processor
    except FileNotFoundError:
        return None
    return Microarchitecture(name, processor) if processor is not None else None


@cache
def microarchitectures() -> tuple[Microarchitecture, ...]:
    """Every processor that the catalogue describes, by id."""
    folder = resources.files("hwprof.hardware").joinpath("events")
    names = sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))
    return tuple(found for name in names if (found := microarchitecture(name)) is not None)
