"""Processes that live on when a case is over."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

AFTER_S: Final = 3.0
LOOK_EVERY_S: Final = 0.05


def left_alive(belongs: Callable[[Path], bool]) -> list[str]:
    """The commands of those of the case that live on after some seconds; they are ended. ``belongs``: of a process's
    folder in /proc, whether it is one of the case's; may raise ``OSError`` where it is gone."""
    deadline = time.monotonic() + AFTER_S
    while (found := _found(belongs)) and time.monotonic() < deadline:
        time.sleep(LOOK_EVERY_S)
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return list(found.values())


def _found(belongs: Callable[[Path], bool]) -> dict[int, str]:
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            if belongs(folder):
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(folder.name)] = command.decode(errors="replace")
    return found
