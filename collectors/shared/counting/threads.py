"""The threads of this process, and what is open on each of them to count its events.

Inherited counters miss threads made before the open, which OpenMP's are; so every thread of /proc/self/task gets
counters of its own, and the list is read again before each iteration.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeVar

from hwprof.errors import HwprofError

SPARE_DESCRIPTORS: Final = 256
"""How many files the workload may still open when counters have taken the rest."""

MORE_DESCRIPTORS: Final = "ulimit -n 65536"


ENDED: Final = (errno.ESRCH, errno.ENODEV)
"""The kernel's errors for a thread that has ended since the list was read; ENODEV (since Linux 6.15): after its group's
leader was opened and before its members were."""


class EndedError(Exception):
    """The thread has ended since the list was read: nothing is lost."""


class RefusedError(Exception):
    """The thread cannot be counted; the message says why."""


class ThreadCounters(ABC):
    """What is open on one thread."""

    def __init__(self, tid: int) -> None:
        self.tid = tid
        self.name = thread_name(tid)
        self.active = True  # it is read at every edge

    @abstractmethod
    def close(self) -> None:
        """Gives everything back."""


Counters = TypeVar("Counters", bound=ThreadCounters)


class ThreadSet(Generic[Counters]):
    """The threads of this process and their counters."""

    def __init__(self, main_tid: int, open_on: Callable[[int], Counters], descriptors: int) -> None:
        """``open_on`` opens a thread's counters, which take so many ``descriptors``; it raises ``EndedError`` or
        ``RefusedError``."""
        self._main_tid = main_tid
        self._open_on = open_on
        self._each = descriptors
        self.threads: list[Counters] = []  # alive as far as known; the main thread first
        self.all: list[Counters] = []  # every thread that was ever counted
        self.refused: dict[int, str] = {}  # tid -> why it is not counted

    def rescan(self) -> list[Counters]:
        """Opens counters on threads that are new, closes those of threads that have ended; returns the new ones.
        Threads that were refused are tried again when others have made room."""
        alive = {int(name) for name in os.listdir("/proc/self/task")}  # noqa: PTH208 - once an iteration, keep it cheap
        living = []
        for thread in self.threads:
            if thread.tid in alive:
                living.append(thread)
            else:
                thread.close()
        known = {thread.tid for thread in living}
        if len(living) == len(self.threads):
            known |= self.refused.keys()
        unknown = sorted(alive - known, key=self._main_first)
        new = self._open(unknown) if unknown else []
        self.threads = sorted(living + new, key=lambda thread: self._main_first(thread.tid))
        self.all += new
        return new

    def give_up(self, thread: Counters, why: str) -> None:
        """The thread cannot be counted after all."""
        self.refused[thread.tid] = why
        self.threads.remove(thread)
        self.all.remove(thread)
        thread.close()

    def require_main_thread(self) -> None:
        """Raises ``HwprofError`` where the main thread is not counted; then nothing stays open."""
        if not self.threads or self.threads[0].tid != self._main_tid:
            self.close()
            reason = self.refused.get(self._main_tid, "it is not a thread of this process")
            raise HwprofError(f"cannot count the main thread: {reason}", f"raise the limit: {MORE_DESCRIPTORS}")

    def close(self) -> None:
        """Closes everything that is open; the threads have their last names from now on."""
        for thread in self.threads:
            thread.name = thread_name(thread.tid) or thread.name
            thread.close()

    def _main_first(self, tid: int) -> tuple[bool, int]:
        return tid != self._main_tid, tid

    def _open(self, tids: list[int]) -> list[Counters]:
        """Counters on those of the threads that are still there, as far as descriptors last: then those that have
        worked most come first."""
        each = self._each
        room = descriptors_left(each * len(tids))
        if room < each * len(tids):
            tids = sorted(tids, key=lambda tid: (tid != self._main_tid, -(cpu_time_ns(tid) or 0)))
        opened = []
        for tid in tids:
            if room < each and tid != self._main_tid:
                self.refused[tid] = os.strerror(errno.EMFILE)
                continue
            try:
                opened.append(self._open_on(tid))
            except EndedError:
                continue
            except RefusedError as error:
                self.refused[tid] = str(error)
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
    """Processor time of a thread of this process since its creation, in nanoseconds; None where the kernel keeps
    none."""
    try:
        run_ns = int(Path(f"/proc/self/task/{tid}/schedstat").read_bytes().split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return run_ns or None


def thread_name(tid: int, pid: int | str = "self") -> str:
    """The kernel's name of a process's thread (its comm); empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/task/{tid}/comm").read_text(encoding="utf-8", errors="replace").rstrip("\n")
    except OSError:
        return ""
