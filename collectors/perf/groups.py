"""Counter groups on every thread of this process: for each thread and event set one, on hybrids one a kind of core.

Inherited counters miss threads made before the open, which OpenMP's are; so every thread of /proc/self/task gets its
own groups, and the list is read again before each iteration.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from pathlib import Path

from collectors.perf.opening import close
from collectors.perf.plan import Plan
from hwprof.hardware import perf_event

SPARE_DESCRIPTORS = 256

ENDED = (errno.ESRCH, errno.ENODEV)
"""What the kernel says of a thread that has ended since the list was read; ENODEV (since Linux 6.15): after its group's
leader was opened and before its members were."""


class ThreadCounters:
    """The groups of one thread. ``leaders[set]`` are the descriptors that reads of whole groups go to, one for each
    part of the set."""

    def __init__(self, plan: Plan, tid: int, name: str) -> None:
        """Opens every set's groups, switched off. Raises ``OSError``: ESRCH (the thread has ended), EMFILE, ..."""
        self.tid = tid
        self.name = name
        self.active = True
        self.ended = False
        # At the last look, of each part of each set: time enabled, time running, and the values.
        self.seen = [[(0, 0, (0,) * len(part.events)) for part in event_set.parts] for event_set in plan.sets]
        self._groups: list[list[list[int]]] = []
        try:
            for event_set in plan.sets:
                self._groups.append([])
                for part in event_set.parts:
                    self._groups[-1].append(plan.opening.open(part.events, tid))
        except OSError:
            self.close()
            raise
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
        """Opens groups on threads that are new, closes those of threads that have ended; returns the new ones. Threads
        that were refused are tried again when others have made room."""
        alive = {int(name) for name in os.listdir("/proc/self/task")}  # noqa: PTH208 - once an iteration, keep it cheap
        for thread in self.threads:
            if thread.tid not in alive:
                thread.ended = True
                thread.close()
        living = [thread for thread in self.threads if not thread.ended]
        known = {thread.tid for thread in living}
        if len(living) == len(self.threads):
            known |= self.refused.keys()
        self.threads = living
        unknown = sorted(alive - known, key=self._main_first)
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
        """Groups on those of the threads that are still there, as far as descriptors last: then those that have worked
        most come first."""
        each = sum(len(event_set.events) for event_set in self._plan.sets)
        room = descriptors_left(each * len(tids))
        if room < each * len(tids):
            tids = sorted(tids, key=lambda tid: (tid != self._main_tid, -(cpu_time_ns(tid) or 0)))
        opened = []
        for tid in tids:
            if room < each and tid != self._main_tid:
                self.refused[tid] = os.strerror(errno.EMFILE)
                continue
            try:
                opened.append(ThreadCounters(self._plan, tid, thread_name(tid)))
            except OSError as error:
                if error.errno not in ENDED:  # else nothing is lost
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
