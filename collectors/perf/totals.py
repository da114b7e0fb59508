"""What all threads counted in a pass, kept to report what the counts do not show: multiplexing, events that never
moved."""

from __future__ import annotations

from collectors.perf.plan import Plan
from collectors.perf.threads import ThreadGroups
from collectors.shared.counting.notes import Total, silent_events
from collectors.shared.counting.readings import FULLY_RUNNING
from hwprof.collector.contract import Note, NoteKind
from hwprof.hardware import perf_event, permission


class Account:
    """Sums over all threads since counting began."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._enabled_ns = [0] * len(plan.sets)
        self._running_ns = [0] * len(plan.sets)
        self._totals = {event.name: Total(event.event, event.pmu) for event in plan.events()}

    @property
    def counted_ns(self) -> int:
        """Processor time during which counters were enabled."""
        return sum(self._enabled_ns)

    def add(self, thread: ThreadGroups, event_set: int) -> int:
        """Adds what the thread has counted with that set since the last time; returns how long its counters were
        enabled, which is its processor time."""
        plan = self._plan
        parts, turns = plan.sets[event_set].parts, plan.turns(plan.sets[event_set])
        seen, ran_ns = thread.seen[event_set], [0] * len(parts)
        first_ns = seen[0][0]
        for number, part in enumerate(parts):
            before, now = seen[number], perf_event.read_group(thread.leaders[event_set][number], len(part.events))
            if now[0] == before[0]:
                continue
            ran_ns[number] = now[1] - before[1]
            for event, earlier, later in zip(part.events, before[2], now[2], strict=True):
                total = self._totals[event.name]
                total.value += later - earlier
                total.running_ns += ran_ns[number]
            seen[number] = now
        enabled_ns = seen[0][0] - first_ns
        self._enabled_ns[event_set] += enabled_ns
        self._running_ns[event_set] += sum(ran_ns[number] for number in turns) if turns else ran_ns[0]
        return enabled_ns

    def notes(self) -> list[Note]:
        """What should be known of the counts."""
        return self._multiplexing() + silent_events(self._totals)

    def _multiplexing(self) -> list[Note]:
        notes = []
        for event_set, enabled_ns, running_ns in zip(self._plan.sets, self._enabled_ns, self._running_ns, strict=True):
            if running_ns >= FULLY_RUNNING * enabled_ns:
                continue
            names = ", ".join(event.name for event in event_set.events if event.kind == "hardware")
            if self._plan.on_every_core(event_set):
                holder = permission.who_holds_counters()
                text = f"the kernel multiplexed: counted {running_ns / enabled_ns:.0%} of the time: {holder.reason}"
                notes.append(Note(NoteKind.MULTIPLEXED, text, names, holder.remedy))
            else:
                kinds = ", ".join(str(part.pmu) for part in event_set.parts if part.pmu is not None)
                text = f"only on {kinds}, where {running_ns / enabled_ns:.0%} of the time was spent"
                notes.append(Note(NoteKind.SCOPE, text, names))
        return notes
