"""Counter groups on a thread of this process: one for each event set, on hybrids one a kind of core."""

from __future__ import annotations

from collectors.perf.plan import Plan
from collectors.shared.counting.threads import ENDED, EndedError, RefusedError, ThreadCounters, ThreadSet
from hwprof.hardware import perf_event


class ThreadGroups(ThreadCounters):
    """The groups of one thread. ``leaders[set]`` are the descriptors that reads of whole groups go to, one for each
    part of the set."""

    def __init__(self, plan: Plan, tid: int) -> None:
        """Opens every set's groups, switched off. Raises ``EndedError`` or ``RefusedError``."""
        super().__init__(tid)
        # At the last look, of each part of each set: time enabled, time running, and the values.
        self.seen = [[(0, 0, (0,) * len(part.events)) for part in event_set.parts] for event_set in plan.sets]
        self._groups: list[list[list[int]]] = []
        try:
            for event_set in plan.sets:
                self._groups.append([])
                for part in event_set.parts:
                    self._groups[-1].append(plan.opening.open(part.events, tid))
        except OSError as error:
            self.close()
            if error.errno in ENDED:
                raise EndedError from error
            raise RefusedError(error.strerror or str(error)) from error
        self.leaders = [[fds[0] for fds in parts] for parts in self._groups]

    def enable(self, event_set: int) -> None:
        """Switches a set on."""
        for leader in self.leaders[event_set]:
            perf_event.enable_group(leader)

    def disable(self, event_set: int) -> None:
        """Switches a set off."""
        for leader in self.leaders[event_set]:
            perf_event.disable_group(leader)

    def close(self) -> None:
        """Gives the descriptors back."""
        for parts in self._groups:
            for fds in parts:
                perf_event.close_group(fds)
        self._groups.clear()


def make_thread_set(plan: Plan, main_tid: int) -> ThreadSet[ThreadGroups]:
    """The threads of this process, each of which gets every group of the plan."""
    descriptors = sum(len(event_set.events) for event_set in plan.sets)
    return ThreadSet(main_tid, lambda tid: ThreadGroups(plan, tid), descriptors)
