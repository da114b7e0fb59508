"""The CPU time of this process up to now, as the kernel charges it.

The kernel charges a thread when it leaves its processor, at a tick, and when its own clock is read (task_sched_runtime
in kernel/sched/core.c); the clock of the process sums what its threads were charged with, and brings only the caller's
up to date (thread_group_cputime in kernel/sched/cputime.c). Of threads at work on other processors it is up to a tick
behind, mostly 4 ms: more than a short iteration takes. So the clocks of the threads are read before the process's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import NamedTuple

from hwprof.thread_clock import thread_cpu_time_ns


class Reading(NamedTuple):
    """CPU time in nanoseconds: of the process since its start, threads that have ended among it, and of threads."""

    process_ns: int
    threads_ns: Mapping[int, int]


class Charged(NamedTuple):
    """What the process was charged with between two edges, each of which took a while to be read."""

    least_ns: int
    most_ns: int
    new_threads_ns: int  # of most: by threads that were not there at the first edge, or no longer at the last one


class ProcessCpuTime:
    """The process's CPU time; of the threads that ``look`` saw as far as they are now."""

    def __init__(self) -> None:
        self._tids: list[int] = []

    def look(self) -> None:
        """Sees which threads there are. Of one that is new and at work elsewhere too little is charged without it."""
        self._tids = [int(name) for name in os.listdir("/proc/self/task")]  # noqa: PTH208 - keep it cheap

    def now(self) -> Reading:
        """About 1 µs a thread."""
        found: dict[int, int] = {}
        for tid in self._tids:
            try:
                found[tid] = thread_cpu_time_ns(tid)
            except OSError:  # it has ended, and was charged then
                continue
        return Reading(time.process_time_ns(), found)


def charged(first: tuple[Reading, Reading], last: tuple[Reading, Reading]) -> Charged:
    """Between two edges, by the readings before and after each of them."""
    most_ns = last[1].process_ns - first[0].process_ns
    begun_ns, ended_ns = first[0].threads_ns, last[1].threads_ns
    known_ns = sum(ns - begun_ns[tid] for tid, ns in ended_ns.items() if tid in begun_ns)
    return Charged(last[0].process_ns - first[1].process_ns, most_ns, max(0, most_ns - known_ns))
