"""Collectors that measure nothing, for tests of plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from hwprof.collector.contract import Availability, Collected, CountedSpan, PassContext, Place
from hwprof.collector.registry import Surveyed
from hwprof.errors import UsageError


class Bystander:
    """A collector that counts nothing."""

    name = "memory"
    summary = "made up"
    place = Place.EXTERNAL
    passes = frozenset({"measure", "trace"})
    wants_idle = False

    def availability(self) -> Availability:
        return Availability(True)

    def start(self, context: PassContext) -> None:
        raise AssertionError("planning starts nothing")

    def stop(self) -> Collected:
        raise AssertionError("planning stops nothing")


class Counter(Bystander):
    """A collector that counts at edges, and knows these events."""

    place = Place.IN_PROCESS

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
    return [Surveyed(made.name, made, available.get(made.name, Availability(True))) for made in collectors]
