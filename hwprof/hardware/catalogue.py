"""The event catalogue: what can be counted, how the kernel is asked for it, and what the name means on a processor.

The events are data (``events/*.toml``, which documents its fields); this module reads and resolves them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

import msgspec

from hwprof.errors import UsageError
from hwprof.run.manifest import EventInfo, Machine


class Mapping(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an event's name stands for on the processors that fulfil all the given conditions."""

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


class Event(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One event of the catalogue."""

    name: str
    kind: Literal["hardware", "software"]
    type: int
    config: int
    unit: str
    topic: str
    meaning: str
    aliases: tuple[str, ...] = ()
    default: bool = False
    busy_loop_moves: bool = False
    kernel_only: bool = False
    on: tuple[Mapping, ...] = ()

    def info(self, machine: Machine) -> EventInfo:
        """The event as the manifest keeps it, with its meaning on that machine."""
        meaning = next((mapping.meaning for mapping in self.on if mapping.applies_to(machine)), self.meaning)
        return EventInfo(name=self.name, meaning=meaning, unit=self.unit, kind=self.kind)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    event: tuple[Event, ...]


@dataclass(frozen=True)
class Catalogue:
    """All known events, in the order in which they are counted and shown."""

    events: tuple[Event, ...]

    def defaults(self) -> tuple[Event, ...]:
        """What is counted unless the user asks for other events."""
        return tuple(event for event in self.events if event.default)

    def select(self, names: Iterable[str]) -> tuple[Event, ...]:
        """The events of those names or aliases, each once, in catalogue order.

        Raises ``UsageError`` on a name that is not in it.
        """
        wanted = set()
        for name in names:
            event = self._by_name().get(name)
            if event is None:
                known = ", ".join(event.name for event in self.events)
                raise UsageError(f"there is no event {name!r}", f"choose from: {known}")
            wanted.add(event.name)
        return tuple(event for event in self.events if event.name in wanted)

    def _by_name(self) -> dict[str, Event]:
        return {name: event for event in self.events for name in (event.name, *event.aliases)}


@cache
def catalogue() -> Catalogue:
    """The catalogue of the data files."""
    events: list[Event] = []
    for file in sorted(resources.files("hwprof.hardware").joinpath("events").iterdir(), key=lambda file: file.name):
        if file.name.endswith(".toml"):
            events += msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), _File).event
    return Catalogue(tuple(events))
