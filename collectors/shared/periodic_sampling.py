"""Sampling in the background: one thread that calls a function on a grid of moments."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator


class SamplingThread:
    """Calls ``sample`` every ``period_s`` seconds until it returns False or ``stop`` is called."""

    def __init__(self, name: str, period_s: float, sample: Callable[[], bool]) -> None:
        self._period_s = period_s
        self._sample = sample
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begins; the first call comes a period later."""
        self._thread.start()

    def stop(self) -> None:
        """Ends, and waits for a call that is under way."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        for pause_s in pauses(self._period_s, time.monotonic):
            if self._stopping.wait(pause_s) or not self._sample():
                return


def pauses(period_s: float, clock_s: Callable[[], float]) -> Iterator[float]:
    """How long to wait before each sample so that they lie on a grid of ``period_s``; missed moments are skipped."""
    begin_s = clock_s()
    number = 0
    while True:
        elapsed_s = clock_s() - begin_s
        number = max(number + 1, int(elapsed_s / period_s))
        yield max(0.0, number * period_s - elapsed_s)
