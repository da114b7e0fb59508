"""How long a pass may take: a tool that the worker runs under may hang."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from types import TracebackType


class TimeLimit:
    """``with limit:`` ends the worker, and all of its group, where what is inside takes longer. Nobody may take note of
    the worker's end inside: its number would be another process's."""

    def __init__(self, limit_s: float | None, pid: int) -> None:
        self.passed = False
        self._limit_s = limit_s
        self._pid = pid
        self._timer = threading.Timer(limit_s, self._end) if limit_s is not None else None

    def __enter__(self) -> None:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()  # else it might end a process that has the number by then

    @property
    def reason(self) -> str:
        """Why the pass was ended."""
        return f"it took longer than {self._limit_s:g} s, and was ended"

    def _end(self) -> None:
        self.passed = True
        with suppress(OSError):
            os.killpg(self._pid, signal.SIGKILL)
