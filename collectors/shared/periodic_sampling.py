"""Sampling in the background: a thread that calls a function on a grid of moments, and the collectors that are built
on it."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import ClassVar, Generic, Protocol, TypeVar

from hwprof.collector.contract import Collected, Collector, PassContext


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


class SampleLog(Protocol):
    """What samples are kept in."""

    def sample(self) -> bool:
        """Takes one sample; False once there is nothing left to sample."""
        ...


Log = TypeVar("Log", bound=SampleLog)


class PeriodicCollector(Collector, Generic[Log]):
    """An external collector that takes a sample at the start and then one every ``_period_s`` seconds."""

    _period_s: float
    _reads_at_end: ClassVar[bool] = True
    """Whether ``stop`` takes one more sample: what counts up must be read at the end of the pass."""

    def __init__(self) -> None:
        self._log: Log | None = None
        self._sampler: SamplingThread | None = None

    def start(self, context: PassContext) -> None:
        """Takes the first sample, then samples in a thread of this process."""
        self._log = self._open(context)
        self._log.sample()
        self._sampler = SamplingThread(f"hwprof-{type(self).__name__}", self._period_s, self._log.sample)
        self._sampler.start()

    def stop(self) -> Collected:
        """Takes the last sample and hands the series over; nothing where it was never started."""
        log, sampler = self._log, self._sampler
        if log is None or sampler is None:
            return Collected()
        sampler.stop()
        if self._reads_at_end:
            log.sample()
        try:
            return self._collected(log)
        finally:
            self._close(log)

    @abstractmethod
    def _open(self, context: PassContext) -> Log:
        """Opens what is sampled; ``_period_s`` holds from then on."""

    @abstractmethod
    def _collected(self, log: Log) -> Collected:
        """What was sampled."""

    @abstractmethod
    def _close(self, log: Log) -> None:
        """Gives back what ``_open`` opened."""
