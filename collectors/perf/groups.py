"""Counter groups on every thread of this process: one group per thread and event set.

Inherited counters miss threads made before the open, which OpenMP's are; so every thread of /proc/self/task gets its
own groups, and the list is read again before each iteration.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from pathlib import Path

from collectors.perf.plan import Plan, close

SPARE_DESCRIPTORS = 256


class ThreadCounters:
    """The groups of one thread. ``leaders[set]`` is the descriptor that a read of the whole group goes to."""

    def __init__(self, plan: Plan, tid: int, name: str) -> None:
        """Opens every set's group, switched off. Raises ``OSError``: ESRCH (the thread has ended), EMFILE, ..."""
        self.tid = tid
        self.name = name
        self.times_ns = [(0, 0)] * len(plan.sets)  # time enabled and running at the last look, by set
        self.active = True
        self.ended = False
        self._groups: list[list[int]] = []
        try:
            for event_set in plan.sets:
                self._groups.append(plan.open(event_set.events, tid))
        except OSError:
            self.close()
            raise
        self.leaders = [fds[0] for fds in self._groups]

    def close(self) -> None:
        """Gives the descriptors back."""
        for fds in self._groups:
            close(fds)
        self._groups.clear()


class Roster:
    """The threads of this process and their counters."""

    def __init__(self, plan: Plan, main_tid: int) -> None:
        self._plan = plan
        self._main_tid = main_tid
        self.threads: list[ThreadCounters] = []  # alive as far as known; the main thread first
        self.all: list[ThreadCounters] = []  # every thread that was ever counted
        self.refused: dict[int, str] = {}  # tid -> why it is not counted

    def rescan(self) -> list[ThreadCounters]:
        """Opens groups on threads that are new, closes those of threads that have ended; returns the new ones."""
        alive = {int(name) for name in os.listdir("/proc/self/task")}  # noqa: PTH208 - once an iteration, keep it cheap
        for thread in self.threads:
            if thread.tid not in alive:
                thread.ended = True
                thread.close()
        self.threads = [thread for thread in self.threads if not thread.ended]
        unknown = sorted(alive - {thread.tid for thread in self.threads}, key=self._main_first)
        new = self._open(unknown) if unknown else []
        self.threads = sorted(self.threads + new, key=lambda thread: self._main_first(thread.tid))
        self.all += new
        return new

    def close(self) -> None:
        """Closes every group."""
        for thread in self.threads:
            thread.close()

    def _main_first(self, tid: int) -> tuple[bool, int]:
        return tid != self._main_tid, tid

    def _open(self, tids: list[int]) -> list[ThreadCounters]:
        """Groups on those of the threads that are still there, as far as descriptors last."""
        each = sum(len(event_set.events) for event_set in self._plan.sets)
        room = descriptors_left(each * len(tids))
        opened = []
        for tid in tids:
            if room < each and tid != self._main_tid:
                self.refused[tid] = os.strerror(errno.EMFILE)
                continue
            try:
                opened.append(ThreadCounters(self._plan, tid, thread_name(tid)))
            except OSError as error:
                if error.errno != errno.ESRCH:  # ESRCH: it ended since the list was read, and nothing is lost
                    self.refused[tid] = error.strerror or str(error)
                continue
            self.refused.pop(tid, None)
            room -= each
        return opened


def descriptors_left(needed: int) -> int:
    """How many files can still be opened, with some kept for the workload; lifts the soft limit to the hard one if it
    is too low for ``needed`` more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = len(os.listdir("/proc/self/fd")) + SPARE_DESCRIPTORS  # noqa: PTH208
    if soft != resource.RLIM_INFINITY and soft < taken + needed and soft != hard:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    return needed if soft == resource.RLIM_INFINITY else soft - taken


def cpu_time_ns(tid: int) -> int | None:
    """Processor time of a thread of this process since its birth, in nanoseconds; None where the kernel keeps none."""
    try:
        run_ns = int(Path(f"/proc/self/task/{tid}/schedstat").read_bytes().split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return run_ns or None


def thread_name(tid: int) -> str:
    """The kernel's name of a thread of this process (its comm)."""
    try:
        return Path(f"/proc/self/task/{tid}/comm").read_text(encoding="utf-8", errors="replace").rstrip("\n")
    except OSError:
        return ""
