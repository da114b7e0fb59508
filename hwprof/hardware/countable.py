"""What is to be counted, in the form that planners and collectors share: events resolved for this very machine."""

from __future__ import annotations

from dataclasses import dataclass, field

from hwprof.hardware.catalogue import Event
from hwprof.hardware.pmu import Code
from hwprof.run.manifest import EventInfo, MetricDefinition
from hwprof.unavailable import Unavailable


@dataclass(frozen=True)
class Countable:
    """An event as it is opened on a thread. On hybrids each kind of core counts its own: ``cpu_core/cycles/``."""

    name: str  # in tables and reports
    event: Event
    code: Code
    meaning: str  # on this machine
    pmu: str | None = None  # the PMU of the kind of core that counts it; None: a software event
    fixed: bool = False  # it has a counter of its own
    exclude_user: bool = False
    exclude_kernel: bool = False  # as asked for by a modifier (``:u``); permission may force it on all events

    @property
    def kind(self) -> str:
        """``hardware`` or ``software``."""
        return self.event.kind

    def info(self) -> EventInfo:
        """The event as the manifest keeps it."""
        return EventInfo(name=self.name, meaning=self.meaning, unit=self.event.unit, kind=self.event.kind)


@dataclass(frozen=True)
class Selection:
    """What the user asked for, or the defaults, as far as this machine has words for it.

    ``bundles``: names that must be counted together, one tuple a metric (or a single event), most wanted first.
    ``dropped``: by event or metric name. ``uncore``: events of whole sockets, which no thread can be charged with.
    """

    events: tuple[Countable, ...]
    bundles: tuple[tuple[str, ...], ...]
    metrics: tuple[MetricDefinition, ...]
    uncore: tuple[Countable, ...] = ()
    dropped: dict[str, Unavailable] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
