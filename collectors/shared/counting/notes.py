"""What counting collectors report of events and threads that are not counted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from collectors.shared.counting.threads import MORE_DESCRIPTORS
from hwprof.collector.contract import Note, NoteKind
from hwprof.hardware import perf_event, permission
from hwprof.hardware.catalogue import Event
from hwprof.hardware.metrics import lost_with
from hwprof.run.manifest import MetricDefinition
from hwprof.unavailable import Unavailable

NAMES_SHOWN: Final = 4
"""Of events that share a reason."""

SILENT_NS: Final = 100_000_000
"""What happens now and then (a miss of the last cache, a page walk) happens at least once in so much processor time."""

_EVENT_SELECT = re.compile(r"event=(0x[0-9a-f]+|[0-9]+)")
_ARITHMETIC: Final = "arithmetic"


def user_code_only(events: str, *, kernel_allowed: bool) -> Note:
    """That ``events`` leave the kernel's code out, and why."""
    if kernel_allowed:
        return Note(NoteKind.SCOPE, "user code only, as asked", events)
    why = f"user code only, since kernel.perf_event_paranoid is {perf_event.paranoid_level()}"
    return Note(NoteKind.SCOPE, why, events, permission.LOWER_PARANOID)


def not_counted(dropped: Mapping[str, Unavailable], metrics: Sequence[MetricDefinition]) -> list[Note]:
    """A note for each reason why events are not counted: the ``metrics`` that are lost with them, and the events that
    none is made of."""
    names: dict[Unavailable, list[str]] = {}
    for name, why_not in dropped.items():
        names.setdefault(why_not, []).append(name)
    return [Note.not_available(enumerated(lost_with(those, metrics)), why_not) for why_not, those in names.items()]


def enumerated(names: Sequence[str]) -> str:
    """The names, or the first of many: the manifest has all of them."""
    more = len(names) - NAMES_SHOWN
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:NAMES_SHOWN])} and {more} more"


def refused_threads(refused: Mapping[int, str]) -> list[Note]:
    """How many threads were not counted, and why."""
    if not refused:
        return []
    reasons = ", ".join(sorted(set(refused.values())))
    return [Note(NoteKind.INCOMPLETE, f"threads not counted ({len(refused)}): {reasons}", remedy=MORE_DESCRIPTORS)]


@dataclass
class Total:
    """What was counted of an event in a pass, over all threads."""

    event: Event
    pmu: str | None = None  # of the kind of core that counts it, where there are several
    value: int = 0
    running_ns: int = 0  # how long it had a counter

    @property
    def family(self) -> tuple[str | None, str]:
        """What the events have in common of which one that counts shows that the processor has the others, too: the
        event select, whose unit masks they are; of arithmetic by precision and width, that it is arithmetic."""
        if self.event.precision is not None or self.event.width is not None:
            return self.pmu, _ARITHMETIC
        select = _EVENT_SELECT.search(self.event.code or "")
        return self.pmu, select[1] if select else self.event.name


def silent_events(totals: Mapping[str, Total]) -> list[Note]:
    """Notes on the hardware events, by name, whose 0 may mean that they are not counted. Not on those that others of
    their family vouch for: no double-precision arithmetic in a single-precision model is as it should be."""
    alive = {total.family for total in totals.values() if total.value}
    silent = {
        name: total
        for name, total in totals.items()
        if total.event.kind == "hardware" and total.running_ns >= SILENT_NS and total.family not in alive
    }
    arithmetic = [name for name, total in silent.items() if total.family[1] == _ARITHMETIC]
    others = [name for name in silent if name not in arithmetic]
    missing = "this processor (or its hypervisor) does not implement it"
    notes = []
    if others:
        text = f"counted 0 throughout: it never happened here, or {missing}"
        notes.append(Note(NoteKind.SUSPECT, text, ", ".join(others)))
    if arithmetic:
        text = f"no arithmetic was counted: the model has none of it, or {missing}"
        notes.append(Note(NoteKind.SUSPECT, text, ", ".join(arithmetic)))
    return notes
