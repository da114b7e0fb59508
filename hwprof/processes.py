"""Processes of hwprof's own: how they are started, and end. Imports nothing that a measured process should not have."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36

_STATE: Final = 0
_PARENT: Final = 1
_USER_TICKS: Final = 11
_SYSTEM_TICKS: Final = 12
_STARTED: Final = 19
"""Of the fields of /proc/PID/stat that stand behind the name (man 5 proc_pid_stat)."""

ALLOCATORS: Final = "jemalloc_bg_thd"
"""The threads of polars' allocator: where another of them cannot be started they try again and again, which is no
progress."""


def command(module: str, *arguments: str) -> list[str]:
    """The command line of a module of hwprof's in a fresh interpreter. The current folder is not where it looks for
    modules: a ``types.py`` or ``queue.py`` that happens to lie there would run in the place of Python's own."""
    return [sys.executable, "-P", "-m", module, *arguments]


def end_with_parent(parent: int | None = None) -> None:
    """From now on the kernel ends this process when the one that started it is gone, however that ended. ``parent`` is
    that one's pid: it may be gone already (else whoever calls finds that out in another way)."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if parent is not None and os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def ending_with_parent() -> Callable[[], object]:
    """The same from the first moment on, for ``preexec_fn`` of a child whose program takes seconds before any code of
    hwprof's runs in it: the kernel remembers it over ``execve``."""
    import ctypes

    return partial(ctypes.CDLL(None).prctl, _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def wake_when_gone(parent: int) -> int:
    """In the place of ``end_with_parent``, for a process that has to clean up after the one that started it: a
    descriptor that is readable when that one is gone, even where somebody has stopped this process. Raises ``OSError``
    where it is gone already."""
    import ctypes

    descriptor = os.pidfd_open(parent)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGCONT, 0, 0, 0)
    return descriptor


class Known(NamedTuple):
    """A process: its number, and when it began, in the kernel's ticks: another one that gets the number began later."""

    pid: int
    started: int


def keep_orphans() -> None:
    """From now on what this process's children leave behind is its own child, so that ``descendants`` finds it."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants(pid: int, but: Collection[int] = ()) -> list[Known]:
    """All that a process started, and these in turn, whatever session they are in: as long as it lives. Without the
    numbers ``but``, and what these started."""
    children: dict[int, list[Known]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        if (fields := _stat(folder)) is not None:
            children.setdefault(int(fields[_PARENT]), []).append(Known(int(folder.name), int(fields[_STARTED])))
    found, waiting = [], [pid]
    while waiting:
        own = [one for one in children.pop(waiting.pop(), []) if one.pid not in but]
        found += own
        waiting += [one.pid for one in own]
    return found


def is_stopped(pid: int) -> bool:
    """Whether somebody has stopped it (SIGSTOP): it may never go on. Not one that is only traced."""
    fields = _stat(Path("/proc") / str(pid))
    return fields is not None and fields[_STATE] == "T"


class Standstill:
    """Looks at a process now and then: whether it has done nothing since the first of some looks, one after the other.
    They are counted, not timed: while both are frozen (a container that is paused) there are none."""

    def __init__(self, pid: int, looks: int) -> None:
        self._pid = pid
        self._most = looks
        self._ticks: dict[str, int] = {}
        self._looks = 0

    def look(self) -> bool:
        """Whether it has: no processor time was charged, and all its threads slept, none for a disk."""
        ticks, asleep = {}, True
        for thread in (Path("/proc") / str(self._pid) / "task").glob("[0-9]*"):
            fields = _stat(thread)
            if fields is None or _name(thread) == ALLOCATORS:
                continue
            ticks[thread.name] = int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])
            asleep &= fields[_STATE] == "S"
        idle = asleep and bool(ticks) and ticks == self._ticks
        self._ticks, self._looks = ticks, self._looks + 1 if idle else 0
        return self._looks >= self._most


def kill(known: Iterable[Known]) -> None:
    """Those of them that still live."""
    for one in known:
        fields = _stat(Path("/proc") / str(one.pid))
        if fields is not None and int(fields[_STARTED]) == one.started:
            with suppress(OSError):
                os.kill(one.pid, signal.SIGKILL)


def end_descendants(but: Collection[int] = ()) -> None:
    """Those of this process: stopped first, so that none of them starts another meanwhile; not the children ``but``,
    nor theirs."""
    found: set[Known] = set()
    while new := set(descendants(os.getpid(), but)) - found:
        found |= new
        for one in new:
            with suppress(OSError):
                os.kill(one.pid, signal.SIGSTOP)
    kill(found)


def _stat(folder: Path) -> list[str] | None:
    """What stands behind the name; None where the process is gone."""
    try:
        return (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


def _name(thread: Path) -> str:
    try:
        return (thread / "comm").read_text(errors="replace").strip()
    except OSError:
        return ""


def end_copy(original: int) -> None:
    """Ends this process where it is a copy of the one with this number: a model's code that forks comes back in both,
    and what follows is for one of them to do."""
    if os.getpid() != original:
        os._exit(0)


def leave(status: int) -> NoReturn:
    """Ends this process here and now: a library's exit handlers must not undo or delay what is written."""
    with suppress(Exception):  # a model's code may have put anything in their place
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def perf_map_of(pid: int) -> Path:
    """Where oneDNN, and everybody who follows perf's convention, writes the map of a process's JIT code."""
    return Path(f"/tmp/perf-{pid}.map")
