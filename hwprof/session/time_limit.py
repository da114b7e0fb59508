"""How long a pass may take, and how long it may go without a word: a tool that the worker runs under may hang."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from contextlib import suppress
from types import TracebackType


class TimeLimit:
    """``with limit:`` ends the worker, and all of its group, where what is inside takes longer than ``limit_s``, or
    nothing was ``heard`` of it for ``silence_s``. None: as long as it likes. Nobody may take note of the worker's end
    inside: its number would be another process's."""

    def __init__(self, limit_s: float | None, silence_s: float | None, pid: int, remedy: str | None = None) -> None:
        self.reason: str | None = None  # why it was ended, if it was
        self.remedy = remedy
        self._limit_s = limit_s
        self._silence_s = silence_s
        self._pid = pid
        self._began_s = self._heard_s = 0.0
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def heard(self) -> None:
        """It goes on."""
        self._heard_s = time.monotonic()

    def __enter__(self) -> None:
        self._began_s = self._heard_s = time.monotonic()
        if self._limit_s is not None or self._silence_s is not None:
            self._thread = threading.Thread(target=self._watch, name="hwprof-time-limit", daemon=True)
            self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()  # else it might end a process that has the number by then

    def _watch(self) -> None:
        while not self._over.wait(max(0.0, min(*self._left_s(), threading.TIMEOUT_MAX))):
            whole_s, silent_s = self._left_s()
            if min(whole_s, silent_s) > 0:
                continue  # it was heard meanwhile
            if whole_s <= 0:
                self.reason = f"it took longer than {self._limit_s:g} s, and was ended"
            else:
                self.reason = f"it hung: not a step in {self._silence_s:g} s, so it was ended"
            with suppress(OSError):
                os.killpg(self._pid, signal.SIGKILL)
            return

    def _left_s(self) -> tuple[float, float]:
        """Of the whole, and of the silence."""
        now_s = time.monotonic()
        whole_s = math.inf if self._limit_s is None else self._began_s + self._limit_s - now_s
        return whole_s, math.inf if self._silence_s is None else self._heard_s + self._silence_s - now_s
