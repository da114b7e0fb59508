"""Whether others use the processors: waits until nobody does, before a pass measures; tells how much they did."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

QUIET_SHARE: Final = 0.05
"""Up to this share of all processors' time that others use, a machine is quiet: what a run is called noisy from."""

WINDOW_S: Final = 0.5
"""For how long processors are watched at a time."""

WINDOWS: Final = 4
"""In so many windows in a row the machine must be quiet: between two of its turns a busy program may rest."""

STAT: Final = Path("/proc/stat")
IDLE: Final = (3, 4)
"""Of the fields of /proc/stat: idle and iowait."""

NOT_TOLD: Final = "the kernel does not tell what the processors do (/proc/stat)"

GUEST: Final = slice(0, 8)
"""Without guest time, which user time has in it already."""


@dataclass(frozen=True)
class Ticks:
    """Of all processors since boot."""

    busy: int  # stolen ones too
    all: int


def read_ticks(stat: Path = STAT) -> Ticks | None:
    """None where the kernel does not tell (man 5 proc_stat)."""
    try:
        name, *fields = stat.read_text(encoding="ascii", errors="replace").partition("\n")[0].split()
        ticks = [int(field) for field in fields[GUEST]]
    except (OSError, ValueError):
        return None
    if name != "cpu" or len(ticks) <= max(IDLE):
        return None
    return Ticks(sum(ticks) - sum(ticks[field] for field in IDLE), sum(ticks))


class Others:
    """What others use of the processors from its making on."""

    def __init__(self) -> None:
        self._before, self._own_s = read_ticks(), _own_s()

    def share(self) -> float | None:
        """Of all processors' time; None where the kernel does not tell. Children count as one's own when they have
        ended."""
        taken_s, all_s = self._so_far()
        return taken_s / all_s if all_s else None

    def taken_ns(self) -> int | None:
        """Of all processors together, stolen time too; None where the kernel does not tell. Children as for
        ``share``."""
        taken_s, all_s = self._so_far()
        return round(taken_s * 1e9) if all_s else None

    def _so_far(self) -> tuple[float, float]:
        """Of others, and all that there was: 0 where it is not told."""
        before, after = self._before, read_ticks()
        if before is None or after is None or after.all <= before.all:
            return 0.0, 0.0
        tick_s = 1 / os.sysconf("SC_CLK_TCK")
        own_s = _own_s() - self._own_s
        return max(0.0, (after.busy - before.busy) * tick_s - own_s), (after.all - before.all) * tick_s


def _own_s() -> float:
    """Processor time of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def wait_until_quiet(
    longest_s: float,
    read: Callable[[], Ticks | None] = read_ticks,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> str | None:
    """Sleeps until others have let the processors alone for two seconds, for ``longest_s`` seconds at most. None: they
    have; else why that is not known. It is meant for a moment in which nothing of hwprof's runs."""
    end, calm = clock() + longest_s, 0
    before = read()
    while calm < WINDOWS:
        if before is None:
            return NOT_TOLD
        sleep(WINDOW_S)
        after = read()
        if after is None or after.all <= before.all:
            return NOT_TOLD
        busy = (after.busy - before.busy) / (after.all - before.all)
        calm = calm + 1 if busy <= QUIET_SHARE else 0
        before = after
        if calm < WINDOWS and clock() >= end:
            processors = busy * (os.cpu_count() or 1)
            return f"after {longest_s:.0f} s of --wait-quiet others still used {processors:.1f} processors"
    return None
