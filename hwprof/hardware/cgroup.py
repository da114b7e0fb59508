"""What a control group allows of the processors, and how often it stopped those in it: a container's CPU limit.

``cpu.max`` and ``cpu.stat`` (Documentation/admin-guide/cgroup-v2.rst); in the first version ``cpu.cfs_quota_us``,
``cpu.cfs_period_us`` and ``cpu.stat`` (Documentation/scheduler/sched-bwc.rst). A limit of a group is one of all groups
below it, so all on the way from the root to this process's are asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

ROOT: Final = Path("/")
_MOUNTS: Final = ("sys/fs/cgroup", "sys/fs/cgroup/unified", "sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct")
"""Where systemd and container runtimes mount what says something of processor time."""


class Throttling(NamedTuple):
    """Since the groups exist. ``stopped_ns``: summed over processors."""

    times: int
    stopped_ns: int


def cpu_limit(root: Path = ROOT) -> float | None:
    """How many processors' time this process gets at most (1.5: of one and a half); None: as many as there are."""
    limits = [limit for group in _groups(root) if (limit := _limit(group)) is not None]
    return min(limits, default=None)


def throttling(root: Path = ROOT) -> Throttling | None:
    """How often, and how long, this process's groups were stopped because they had used up what they get; None where
    nothing is limited."""
    found = [_throttling(group) for group in _groups(root) if _limit(group) is not None]
    if not found:
        return None
    return Throttling(sum(one.times for one in found), sum(one.stopped_ns for one in found))


def _groups(root: Path) -> Iterator[Path]:
    """The folders of this process's groups and of those above them, each once."""
    folders: dict[Path, None] = {}
    for line in (_text(root / "proc/self/cgroup") or "").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers and "cpu" not in controllers.split(","):
            continue
        group = PurePosixPath(path.lstrip("/"))
        if ".." in group.parts:  # above the root of this process's namespace
            group = PurePosixPath()
        for mount in _MOUNTS:
            # one mount may be known by two names
            folders |= dict.fromkeys((root / mount / one).resolve() for one in (group, *group.parents))
    return iter(folders)


def _limit(group: Path) -> float | None:
    quota, period = (*(_text(group / "cpu.max") or "").split(), "", "")[:2]
    if not quota:
        quota, period = (_text(group / f"cpu.cfs_{name}_us") or "" for name in ("quota", "period"))
    try:
        allowed = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):  # "max", or there is no such file
        return None
    return allowed if allowed > 0 else None  # -1: none


def _throttling(group: Path) -> Throttling:
    words = (line.split() for line in (_text(group / "cpu.stat") or "").splitlines())
    known = {pair[0]: int(pair[1]) for pair in words if len(pair) == 2 and pair[1].isdecimal()}
    stopped_ns = known.get("throttled_time", 1000 * known.get("throttled_usec", 0))
    return Throttling(known.get("nr_throttled", 0), stopped_ns)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
