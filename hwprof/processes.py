"""Processes of hwprof's own: how they are started, and end. Imports nothing that a measured process should not have."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Final, NoReturn

_PR_SET_PDEATHSIG: Final = 1


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


def end_copy(original: int) -> None:
    """Ends this process where it is a copy of the one with this number: a model's code that forks comes back in both,
    and what follows is for one of them to do."""
    if os.getpid() != original:
        os._exit(0)


def leave(status: int) -> NoReturn:
    """Ends this process here and now: a library's exit handlers must not undo or delay what is written."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def perf_map_of(pid: int) -> Path:
    """Where oneDNN, and everybody who follows perf's convention, writes the map of a process's JIT code."""
    return Path(f"/tmp/perf-{pid}.map")
