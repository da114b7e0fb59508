"""A worker that a tool of its own holds: one that traces it (ptrace) stops it for each look, and may itself be stopped,
or hang, in the middle of one. Then nobody in the worker can do anything about it."""

from __future__ import annotations

import os
import re
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final

from hwprof.session.watcher import Watcher

HELD_S: Final = 10.0
"""Looks take milliseconds."""

LOOK_EVERY_S: Final = 1.0

PROC: Final = Path("/proc")
FIELDS: Final = re.compile(r"^(State|TracerPid|\w*voluntary_ctxt_switches):\s*(\w+)", re.MULTILINE)
TRACED: Final = "t"  # stopped by its tracer


class HeldWorker(Watcher):
    """``with held:`` ends a tool of the worker's process group that has held it for ``HELD_S``: the worker goes on, and
    the tool's collector finds it gone. A debugger of the user's is in another group."""

    def __init__(self, pid: int, proc: Path = PROC) -> None:
        super().__init__("held-worker", LOOK_EVERY_S)
        self._pid = pid
        self._proc = proc
        self._before: dict[str, str] = {}
        self._since_s = 0.0

    def look(self, now_s: float) -> None:
        """Ends the tool where nothing has changed for too long: each stop, and each time that it goes on, is a context
        switch."""
        found = self._status()
        if found.get("State") != TRACED or found != self._before:
            self._before, self._since_s = found, now_s
        elif now_s - self._since_s >= HELD_S:
            tracer = int(found["TracerPid"])
            with suppress(OSError):
                if tracer and os.getpgid(tracer) == self._pid:
                    os.kill(tracer, signal.SIGKILL)

    def _status(self) -> dict[str, str]:
        try:
            return dict(FIELDS.findall((self._proc / str(self._pid) / "status").read_text()))
        except OSError:  # it has ended
            return {}
