"""PAPI's event sets on a thread of this process: one for each set of the plan."""

from __future__ import annotations

import errno
import os

from collectors.papi.library import ECOUNT, ESYS, PapiError
from collectors.papi.plan import Plan
from collectors.shared.counting.threads import EndedError, RefusedError, ThreadCounters, ThreadSet, cpu_time_ns


class ThreadSets(ThreadCounters):
    """The event sets of one thread, at most one of which counts."""

    def __init__(self, plan: Plan, tid: int, *, attach: bool) -> None:
        """Opens every set, stopped. Without ``attach`` the thread must be the calling one. Raises ``EndedError`` or
        ``RefusedError``."""
        super().__init__(tid)
        self.cpu_ns = cpu_time_ns(tid)  # processor time since its creation, at the last read
        self.sets: list[int] = []  # PAPI's numbers, by number in the plan
        self._papi = plan.papi
        self._counting: int | None = None
        try:
            for event_set in plan.sets:
                self.sets.append(self._papi.open_set(event_set, tid if attach else None))
        except PapiError as error:
            self.close()
            if error.code == ESYS:
                raise EndedError from error
            raise RefusedError(os.strerror(errno.EMFILE) if error.code == ECOUNT else str(error)) from error

    def start(self, event_set: int) -> None:
        """From now on the plan's set of that number counts, from 0 if it did not before. Raises ``PapiError``."""
        number = self.sets[event_set]
        if number != self._counting:
            if self._counting is not None:
                self._papi.stop(self._counting)
                self._counting = None
            self._papi.start(number)
            self._counting = number

    def worked_ns(self) -> int | None:
        """Processor time since the last look; None where the kernel keeps none."""
        before_ns, self.cpu_ns = self.cpu_ns, cpu_time_ns(self.tid)
        return None if self.cpu_ns is None else self.cpu_ns - (before_ns or 0)

    def close(self) -> None:
        """Gives everything back to PAPI."""
        for number in self.sets:
            self._papi.close_set(number)
        self.sets.clear()


def make_thread_set(plan: Plan, main_tid: int) -> ThreadSet[ThreadSets]:
    """The threads of this process, each of which gets every set of the plan."""

    def open_on(tid: int) -> ThreadSets:
        if not plan.attaches and tid != main_tid:
            raise RefusedError("PAPI attaches to no other thread where there is no hardware counter")
        return ThreadSets(plan, tid, attach=plan.attaches)

    descriptors = sum(len(event_set) for event_set in plan.sets) + 1  # PAPI opens one more for a moment
    return ThreadSet(main_tid, open_on, descriptors)
