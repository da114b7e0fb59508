"""PAPI's event sets on every thread of this process: one for each thread and set of the plan."""

from __future__ import annotations

import os

from collectors.papi.library import ECOUNT, ESYS, PapiError
from collectors.papi.plan import Plan
from collectors.perf.groups import descriptors_left, thread_name
from hwprof.errors import HwprofError


class ThreadSets:
    """The event sets of one thread, at most one of which counts."""

    def __init__(self, plan: Plan, tid: int, name: str, *, attach: bool) -> None:
        """Opens every set, stopped. Without ``attach`` the thread must be the calling one. Raises ``PapiError``."""
        self.tid = tid
        self.name = name
        self.active = True
        self.cpu_ns: int | None = None  # processor time since its birth, at the last look
        self.sets: list[int] = []  # PAPI's numbers, by number in the plan
        self._papi = plan.papi
        self._counting: int | None = None
        try:
            for event_set in plan.sets:
                self.sets.append(self._papi.open_set(event_set, tid if attach else None))
        except PapiError:
            self.close()
            raise

    def start(self, event_set: int) -> None:
        """From now on the plan's set of that number counts, from 0 if it did not before. Raises ``PapiError``."""
        number = self.sets[event_set]
        if number != self._counting:
            if self._counting is not None:
                self._papi.stop(self._counting)
                self._counting = None
            self._papi.start(number)
            self._counting = number

    def close(self) -> None:
        """Gives everything back to PAPI."""
        for number in self.sets:
            self._papi.close_set(number)
        self.sets.clear()


class Roster:
    """The threads of this process and their event sets."""

    def __init__(self, plan: Plan, main_tid: int) -> None:
        self._plan = plan
        self._main_tid = main_tid
        self.threads: list[ThreadSets] = []  # alive as far as known; the main thread first
        self.all: list[ThreadSets] = []  # every thread that was ever counted
        self.refused: dict[int, str] = {}  # tid -> why it is not counted

    def rescan(self) -> list[ThreadSets]:
        """Opens sets on threads that are new, closes those of threads that have ended; returns the new ones."""
        alive = {int(name) for name in os.listdir("/proc/self/task")}  # noqa: PTH208 - once an iteration, keep it cheap
        for thread in self.threads:
            if thread.tid not in alive:
                thread.close()
        known = [thread for thread in self.threads if thread.tid in alive]
        unknown = alive - {thread.tid for thread in known} - (set() if self._plan.attaches else self.refused.keys())
        new = self._open(sorted(unknown, key=self._main_first)) if unknown else []
        self.threads = sorted(known + new, key=lambda thread: self._main_first(thread.tid))
        self.all += new
        return new

    def start(self, event_set: int) -> None:
        """Lets every thread count that set; one that PAPI cannot start is given up. Raises ``HwprofError`` if that is
        the main thread."""
        for thread in list(self.threads):
            try:
                thread.start(event_set)
            except PapiError as error:
                self.refused[thread.tid] = str(error)
                self.threads.remove(thread)
                self.all.remove(thread)
                thread.close()
        if not self.threads or self.threads[0].tid != self._main_tid:
            reason = self.refused.get(self._main_tid, "it is not a thread of this process")
            self.close()
            raise HwprofError(f"PAPI cannot count the main thread: {reason}", "raise the limit: ulimit -n 65536")

    def close(self) -> None:
        """Closes every set."""
        for thread in self.threads:
            thread.close()

    def _main_first(self, tid: int) -> tuple[bool, int]:
        return tid != self._main_tid, tid

    def _open(self, tids: list[int]) -> list[ThreadSets]:
        plan = self._plan
        each = sum(len(event_set) for event_set in plan.sets) + 1  # PAPI opens one more for a moment
        room = descriptors_left(each * len(tids))
        opened = []
        for tid in tids:
            main = tid == self._main_tid
            if not plan.attaches and not main:
                self.refused[tid] = "PAPI attaches to no other thread where there is no hardware counter"
                continue
            if room < each and not main:
                self.refused[tid] = "there are no file descriptors left"
                continue
            try:
                opened.append(ThreadSets(plan, tid, thread_name(tid), attach=plan.attaches))
            except PapiError as error:
                if error.code != ESYS:  # ESYS: it ended since the list was read, and nothing is lost
                    why = "there are no file descriptors left" if error.code == ECOUNT else str(error)
                    self.refused[tid] = why
                continue
            self.refused.pop(tid, None)
            room -= each
        return opened
