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

from collectors.perf.plan import Plan
from hwprof.hardware import perf_event

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
        self.leaders: list[int] = []
        self._fds: list[int] = []
        try:
            for event_set in plan.sets:
                leader = -1
                for event in event_set.events:
                    fd = perf_event.open_event(plan.attributes(event), tid, leader)
                    self._fds.append(fd)
                    leader = fd if leader < 0 else leader
                self.leaders.append(leader)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Gives the descriptors back, members before leaders."""
        for fd in reversed(self._fds):
            with contextlib.suppress(OSError):
                os.close(fd)
        self._fds.clear()


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
        known = {thread.tid for thread in self.threads}
        new = [opened for tid in sorted(alive - known) if (opened := self._open(tid)) is not None]
        self.threads = sorted(self.threads + new, key=lambda thread: (thread.tid != self._main_tid, thread.tid))
        self.all += new
        return new

    def close(self) -> None:
        """Closes every group."""
        for thread in self.threads:
            thread.close()

    def _open(self, tid: int) -> ThreadCounters | None:
        raise_descriptor_limit(sum(len(event_set.events) for event_set in self._plan.sets))
        try:
            thread = ThreadCounters(self._plan, tid, thread_name(tid))
        except OSError as error:
            if error.errno != errno.ESRCH:  # ESRCH: it ended since the list was read, and nothing is lost
                self.refused[tid] = error.strerror or str(error)
            return None
        self.refused.pop(tid, None)
        return thread


def raise_descriptor_limit(needed: int) -> None:
    """Lifts the soft limit on open files to the hard one if ``needed`` more would come near to it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft == hard:
        return
    in_use = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    if in_use + needed + SPARE_DESCRIPTORS > soft:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


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
