"""Which collectors there are: whatever is registered under the entry points ``hwprof.collectors``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from hwprof.collector.contract import Availability, Collector
from hwprof.errors import UsageError

GROUP: Final = "hwprof.collectors"


@cache
def _entry_points() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def names() -> list[str]:
    """The registered collectors; nothing is imported for it."""
    return list(_entry_points())


def create(name: str) -> Collector:
    """A new instance; raises ``UsageError`` for an unknown name, and whatever a broken collector raises."""
    entry = _entry_points().get(name)
    if entry is None:
        raise UsageError(f"no collector is called {name!r}", f"one of {', '.join(names())}")
    collector: Collector = entry.load()()
    return collector


@dataclass(frozen=True)
class Surveyed:
    """A collector and whether it works here."""

    name: str
    collector: Collector | None  # None: it could not even be made
    availability: Availability


def survey(chosen: Iterable[str] | None = None) -> list[Surveyed]:
    """Every collector (or the chosen ones) with its availability; a broken one is unavailable, with its error."""
    found = []
    for name in names() if chosen is None else chosen:
        try:
            collector = create(name)
            found.append(Surveyed(name, collector, collector.availability()))
        except UsageError:
            raise
        except Exception as error:  # a third party's collector may fail in any way; the rest goes on without it
            found.append(Surveyed(name, None, Availability(False, f"it is broken: {type(error).__name__}: {error}")))
    return found
