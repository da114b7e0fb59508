"""The threads of the process that are not instrumented, and how much they work meanwhile."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path
from typing import Final

from collectors.shared.counting.threads import thread_name
from hwprof.thread_clock import thread_cpu_time_ns

ENDED: Final = "threads that have ended"


def thread_ids() -> set[int]:
    """Of this process."""
    return {int(task.name) for task in Path("/proc/self/task").iterdir()}


class UninstrumentedThreads:
    """Watches every thread but the ones that the engine brought, from now on until ``end``."""

    def __init__(self, own: Collection[int]) -> None:
        self._own = set(own)
        self._spent_ns: dict[int, int] = {}
        self._names: dict[int, str | None] = {}
        self._ended_ns = 0
        _times()  # instrumented already, this is copied where it is executed first: milliseconds between two clocks
        self._process_ns, self._began_ns = _times()

    def end(self) -> None:
        """What comes later is not the model's: making tables brings threads of its own."""
        process_ns, now_ns = _times()
        self._spent_ns = {tid: time_ns - self._began_ns.get(tid, 0) for tid, time_ns in now_ns.items()}
        self._names = {tid: thread_name(tid) for tid in now_ns}
        self._ended_ns = process_ns - self._process_ns - sum(self._spent_ns.values())

    def worked(self, instrumented: Collection[int]) -> dict[str, int]:
        """By thread (name and number) the CPU time in nanoseconds until ``end``, without the instrumented ones; what
        nobody who was still there had used is that of threads that have ended."""
        others = {
            f"{self._names[tid] or 'a thread'} ({tid})": spent_ns
            for tid, spent_ns in self._spent_ns.items()
            if tid not in instrumented and tid not in self._own
        }
        return {**others, ENDED: max(self._ended_ns, 0)}


def _times() -> tuple[int, dict[int, int]]:
    """CPU time of the process, and of each thread, in nanoseconds: up to now, also of those that run."""
    found = {}
    for tid in thread_ids():
        try:
            found[tid] = thread_cpu_time_ns(tid)
        except OSError:  # it has ended meanwhile
            continue
    return time.process_time_ns(), found
