"""Collectors that measure nothing, for tests of plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from hwprof.collector.contract import Availability, Collected, Collector, CountedSpan, PassContext
from hwprof.collector.declaration import Declaration, Place
from hwprof.collector.registry import Surveyed
from hwprof.errors import UsageError
from hwprof.run.roles import Role


class Bystander(Collector):
    """A collector that counts nothing; what it is declared with stands in the class."""

    name = "memory"
    place = Place.EXTERNAL
    role = Role.MEMORY
    passes = frozenset({"measure", "trace"})
    wants_idle = False

    def availability(self) -> Availability:
        return Availability()

    def start(self, context: PassContext) -> None:
        raise AssertionError("planning starts nothing")

    def stop(self) -> Collected:
        raise AssertionError("planning stops nothing")


class Counter(Bystander):
    """A collector that counts at edges, and knows these events."""

    place = Place.IN_PROCESS
    role = Role.COUNTER

    def __init__(self, name: str, *known: str) -> None:
        self.name = name
        self._known = known

    def check_options(self, options: dict[str, Any]) -> None:
        unknown = sorted(set(options["events"]) - set(self._known))
        if unknown:
            raise UsageError(f"{self.name} knows no event {unknown[0]!r}")

    def event_sets(self) -> Sequence[Sequence[str]]:
        return [self._known]

    def begin_iteration(self, event_set: int) -> None: ...

    def _reader(self) -> Callable[[], None]:
        raise AssertionError("planning reads nothing")

    full_reader = enter_reader = leave_reader = gap_reader = _reader

    def counts(self, spans: Sequence[CountedSpan]) -> pl.DataFrame:
        raise AssertionError("planning counts nothing")


def survey(**available: Availability) -> list[Surveyed]:
    collectors = [Counter("papi", "cpi", "PAPI_TOT_CYC"), Counter("perf", "cpi", "cycles"), Bystander()]
    return [surveyed(made, available.get(made.name)) for made in collectors]


def surveyed(made: Bystander, availability: Availability | None = None) -> Surveyed:
    """As if it were registered: perf is the counter that everybody means, instrumented its fallback."""
    declared = Declaration(
        name=made.name,
        summary="made up",
        implementation="nowhere:Nobody",
        place=made.place,
        role=made.role,
        passes=made.passes,
        own_passes=type(made).own_passes is not Collector.own_passes,
        preferred=made.name == "perf",
        fallback=made.name == "instrumented",
        wants_idle=made.wants_idle,
    )
    return Surveyed(declared, made, availability or Availability())
