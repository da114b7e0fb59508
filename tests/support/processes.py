"""What /proc says of a process."""

from __future__ import annotations

import time
from pathlib import Path


def stat_of(pid: int) -> list[str]:
    """The fields of its ``stat`` after the name: state, parent, …; none where there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def alive(pid: int) -> bool:
    """Whether it runs or could: it is neither gone nor only waiting for somebody to take note of its end."""
    return stat_of(pid)[:1] not in ([], ["Z"], ["X"])


def parent_of(pid: int) -> int:
    """Who started it."""
    return int(stat_of(pid)[1])


def children_of(pid: int) -> list[int]:
    """Whom its main thread has started, and nobody has taken note of the end of."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def gone_soon(pid: int, seconds: float = 3) -> bool:
    """Whether it is not alive by then: what is killed needs a moment."""
    deadline_s = time.monotonic() + seconds
    while alive(pid):
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.02)
    return True
