"""A command that runs a model's code in its own process: a copy of that process does, and the one that was started sees
how it ends. That code may end its process in silence, with any exit code, or crash it."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from hwprof import processes
from hwprof.errors import HwprofError
from hwprof.session.interruption import heed_none, how_it_ended

LOOK_EVERY_S: Final = 0.5
"""A signal that comes just before a wait does not end it."""

SHORT_S: Final = 0.002


def in_copy() -> int | None:
    """None in the copy, which is the command from here on; where no copy can be had, the process itself is. In the one
    that was started: the exit code of the copy, which has told what there was to tell. Raises ``HwprofError`` where the
    copy ended before it was done, and ``KeyboardInterrupt``, with which it ends."""
    sys.stdout.flush()
    sys.stderr.flush()
    hears, tells = os.pipe()
    original = os.getpid()
    try:
        pid = os.fork()
    except OSError:
        os.close(hears)
        os.close(tells)
        return None
    if pid:
        os.close(tells)
        try:
            return _exit_code(pid, hears)
        finally:
            os.close(hears)
    os.close(hears)
    heed_none()
    processes.end_with_parent(original)
    processes.tell_end_to(tells)
    return None


def _exit_code(pid: int, hears: int) -> int:
    """Of this process, which tells it there when it is done."""
    try:
        status = _end_of(pid, lambda: bool(select.select([hears], [], [], LOOK_EVERY_S)[0]))
    except BaseException:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        raise
    os.set_blocking(hears, False)  # what the model's code has started may hold it
    with suppress(BlockingIOError):
        if said := os.read(hears, 1):
            return said[0]
    raise HwprofError(f"the process ended {how_it_ended(status)}")


def _end_of(pid: int, wait: Callable[[], bool]) -> int:
    """Its exit code, negative for a signal; 0 where nobody can know, for SIGCHLD is ignored. ``wait`` waits for a
    while, and says when it need not any longer: then the end is near, or the model's code has closed what it was to
    tell it with."""
    while True:
        try:
            done, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return 0
        if done:
            return os.waitstatus_to_exitcode(status)
        if wait():
            time.sleep(SHORT_S)
