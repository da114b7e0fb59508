"""The worker's child processes: their work is real, and no counter on the worker's own threads sees it."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Final

_NS_A_TICK: Final = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class Children:
    """What child processes (data loaders, say) did since this was made."""

    def __init__(self) -> None:
        self._before_ns = sum(cpu_ns for _, cpu_ns in _living().values())
        self._reaped_before_ns = _reaped_ns()

    def worked(self) -> tuple[int, list[str]]:
        """(processor time of all of them in ns, to 10 ms; those that live, as ``python3 (pid 123)``)."""
        living = _living()
        cpu_ns = sum(cpu_ns for _, cpu_ns in living.values()) + _reaped_ns()
        names = [f"{name} (pid {pid})" for pid, (name, _) in living.items()]
        return max(0, cpu_ns - self._before_ns - self._reaped_before_ns), names


def _living() -> dict[int, tuple[str, int]]:
    """Each child's and further descendant's name and processor time, by pid. Empty on kernels that do not tell
    (CONFIG_PROC_CHILDREN)."""
    found: dict[int, tuple[str, int]] = {}
    parents = ["self"]
    while parents:
        for task in Path(f"/proc/{parents.pop()}/task").glob("*/children"):
            for pid in _text(task).split():
                stat = _text(Path(f"/proc/{pid}/stat"))
                if not stat:
                    continue
                name, _, rest = stat.partition("(")[2].rpartition(")")
                # after the name: state, …; utime, stime and those of its own waited-for children are fields 14 to 17
                found[int(pid)] = (name, sum(map(int, rest.split()[11:15])) * _NS_A_TICK)
                parents.append(pid)
    return found


def _reaped_ns() -> int:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return int((used.ru_utime + used.ru_stime) * 1e9)


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # it has ended
        return ""
