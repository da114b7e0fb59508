"""Threads that work when they are told to."""

from __future__ import annotations

import threading
from collections.abc import Callable


class WorkerThread(threading.Thread):
    """A thread that does what it is handed, and sleeps otherwise."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._asked, self.done = threading.Semaphore(0), threading.Semaphore(0)
        self._work: Callable[[], object] = int
        self.start()

    def run(self) -> None:
        while True:
            self._asked.acquire()
            self._work()
            self.done.release()

    def begin(self, work: Callable[[], object]) -> None:
        """Lets the thread do it."""
        self._work = work
        self._asked.release()

    def end(self) -> None:
        """Waits until it has done that."""
        self.done.acquire()

    def do(self, work: Callable[[], object]) -> None:
        """Lets the thread do it, and waits."""
        self.begin(work)
        self.end()
