"""A worker that somebody has stopped, its own code among them: nothing of the pass goes on until somebody lets it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hwprof import processes
from hwprof.session.watcher import Watcher

STOPPED_S: Final = 10.0
"""Who stops it on purpose for a moment need not be told so."""

LOOK_EVERY_S: Final = 1.0


class StoppedWorker(Watcher):
    """Tells how to let the worker go on, once each time that it has been stopped for ``STOPPED_S``, and takes the time:
    what was under way contains it."""

    def __init__(self, pid: int, tell: Callable[[str], object]) -> None:
        """``tell`` is called from another thread."""
        super().__init__("stopped-worker", LOOK_EVERY_S)
        self.stopped_s = 0.0
        """For how long in all, as far as was told."""
        self._pid = pid
        self._tell = tell
        self._since_s: float | None = None
        self._told_s: float | None = None  # up to when it is in ``stopped_s``

    def look(self, now_s: float) -> None:
        """Takes note of whether it is stopped at this time."""
        if not processes.is_stopped(self._pid):
            self._since_s = self._told_s = None
            return
        if self._since_s is None:
            self._since_s = now_s
        if self._told_s is not None:
            self.stopped_s += now_s - self._told_s
            self._told_s = now_s
        elif now_s - self._since_s >= STOPPED_S:
            self.stopped_s += now_s - self._since_s
            self._told_s = now_s
            self._tell(f"the worker is stopped (SIGSTOP), and waited for: kill -CONT {self._pid} lets it go on")
