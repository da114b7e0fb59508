"""Who looks at something now and then while a pass goes on."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from types import TracebackType


class Watcher(ABC):
    """``with watcher:`` has it ``look`` every ``every_s`` seconds, in a thread of its own."""

    def __init__(self, what: str, every_s: float) -> None:
        """``what`` it is: the thread's name behind ``hwprof-``."""
        self._every_s = every_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"hwprof-{what}", daemon=True)

    @abstractmethod
    def look(self, now_s: float) -> None:
        """Is called at this time of the monotonic clock. Raises nothing."""

    def __enter__(self) -> None:
        self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """From now on."""
        self._thread.start()

    def stop(self) -> None:
        """No look comes behind this; may be called again, and where it never looked."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(self._every_s):
            self.look(time.monotonic())
