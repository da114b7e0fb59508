"""The threads of the process that are not followed, and how much they work meanwhile."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from collectors.counting.threads import cpu_time_ns, thread_name


def thread_ids() -> set[int]:
    """Of this process."""
    return {int(task.name) for task in Path("/proc/self/task").iterdir()}


class Unfollowed:
    """Watches every thread but the ones that the engine brought."""

    def __init__(self, own: Collection[int]) -> None:
        self._own = set(own)
        self._began_ns = self._times()

    def worked(self, followed: Collection[int]) -> dict[str, int]:
        """By thread (name and number) the CPU time in nanoseconds since the beginning, without the followed ones."""
        return {
            f"{thread_name(tid) or 'a thread'} ({tid})": now_ns - self._began_ns.get(tid, 0)
            for tid, now_ns in self._times().items()
            if tid not in followed
        }

    def _times(self) -> dict[int, int]:
        return {tid: time_ns for tid in thread_ids() - self._own if (time_ns := cpu_time_ns(tid)) is not None}
