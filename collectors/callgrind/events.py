"""What callgrind counts under the names of this project: see ``events.toml``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Literal

import msgspec

from hwprof.data_files import read_toml
from hwprof.hardware.metrics import operands
from hwprof.run.manifest import EventInfo, MetricDefinition


class Event(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One event: the sum of columns of a profile."""

    name: str
    sum: tuple[str, ...]
    provenance: Literal["instrumented", "simulated"]
    meaning: str

    def info(self) -> EventInfo:
        """For the manifest."""
        return EventInfo(self.name, self.meaning, "1", kind=self.provenance)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    event: tuple[Event, ...]
    metric: tuple[MetricDefinition, ...]


@cache
def _file() -> _File:
    return read_toml(__name__, "events.toml", _File)


def known() -> tuple[Event, ...]:
    """All, in the order in which they are shown."""
    return _file().event


def counted(columns: Sequence[str]) -> list[Event]:
    """Those that a profile with these columns holds."""
    return [event for event in known() if set(event.sum) <= set(columns)]


def every_metric() -> tuple[MetricDefinition, ...]:
    """All that a profile can give."""
    return _file().metric


def metrics(events: Sequence[Event]) -> list[MetricDefinition]:
    """The metrics derived from these."""
    known_names = {event.name for event in known()}
    names = {event.name for event in events}
    return [metric for metric in _file().metric if names.issuperset(known_names.intersection(operands(metric.formula)))]
