"""What others did to an iteration: read before and after it, from what every Linux tells without a PMU or a privilege.

It is read outside of the iteration's spans, a file a thread: about 10 µs each.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hwprof.hardware import machine
from hwprof.run.manifest import Disturbance

TASKS: Final = Path("/proc/self/task")

SCHEDULED: Final = 2
"""CPUCLOCK_SCHED: what the scheduler accounts. A clock's number holds the process it is of: clock_getcpuclockid(3)."""


@dataclass(frozen=True)
class Reading:
    """The kernel's accounts at one moment."""

    time_ns: int
    preemptions: int  # of the process since its start
    waited_ns: Mapping[str, int]  # by thread; empty where the kernel keeps no such account
    stolen_ns: int | None
    own_ns: Mapping[int, int] = field(default_factory=dict)  # CPU time by process that works for hwprof
    page_faults: int = 0  # of the process since its start
    processors: int | None = None  # that the thread that reads may use


def read(own: Sequence[int] = ()) -> Reading:
    """Of this process, now; ``own`` are the processes that work for hwprof beside it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return Reading(
        time.monotonic_ns(),
        used.ru_nivcsw,
        waited_by_thread(TASKS),
        machine.stolen_ns(),
        {pid: cpu_ns for pid in own if (cpu_ns := process_cpu_ns(pid)) is not None},
        used.ru_minflt + used.ru_majflt,
        len(os.sched_getaffinity(0)),
    )


def process_cpu_ns(pid: int) -> int | None:
    """CPU time of all threads of a process, exact at this moment; None where it has ended."""
    try:
        return time.clock_gettime_ns(~pid << 3 | SCHEDULED)
    except OSError:
        return None


def waited_by_thread(tasks: Path) -> dict[str, int]:
    """How long each thread has waited for a processor since its creation, in nanoseconds: the second field of
    ``schedstat`` (Documentation/scheduler/sched-stats.rst)."""
    found: dict[str, int] = {}
    try:
        names = os.listdir(tasks)  # noqa: PTH208 - between iterations, keep it cheap
    except OSError:
        return found
    for name in names:
        try:
            found[name] = int((tasks / name / "schedstat").read_bytes().split()[1])
        except (OSError, ValueError, IndexError):  # it has ended, or the kernel has no such account
            continue
    return found


def between(before: Reading, after: Reading) -> Disturbance:
    """What happened from one reading to the next. A thread that ended meanwhile is missing; one that was created has
    waited all of its time meanwhile."""
    stolen = None if before.stolen_ns is None or after.stolen_ns is None else after.stolen_ns - before.stolen_ns
    waited = sum(ns - before.waited_ns.get(tid, 0) for tid, ns in after.waited_ns.items())
    return Disturbance(
        elapsed_ns=after.time_ns - before.time_ns,
        preemptions=after.preemptions - before.preemptions,
        waited_ns=waited if after.waited_ns else None,
        stolen_ns=stolen,
        own_ns=sum(ns - before.own_ns[pid] for pid, ns in after.own_ns.items() if pid in before.own_ns),
        page_faults=after.page_faults - before.page_faults,
        processors=min((n for n in (before.processors, after.processors) if n is not None), default=None),
    )
