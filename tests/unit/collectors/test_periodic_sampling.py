from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.shared.periodic_sampling import PeriodicCollector, SamplingThread, pauses
from hwprof.collector.contract import Availability, Collected, Detail, PassContext


@given(st.lists(st.integers(0, 64), max_size=40))
def test_samples_lie_on_a_grid(delays: list[int]) -> None:
    """However long each sample takes, the next one is at (or, if that has passed, after) a later point of the grid.

    The period is 1/8 s and delays are multiples of 1/64 s, so that the arithmetic is exact.
    """
    now_s, points = 1024.0, [0]
    grid = pauses(1 / 8, lambda: now_s)
    for delay in delays:
        pause_s = next(grid)
        now_s += pause_s
        point, beyond = divmod((now_s - 1024) * 8, 1)
        assert beyond == 0 or pause_s == 0
        assert point > points[-1]
        points.append(int(point))
        now_s += delay / 64


def test_a_sample_that_takes_too_long_skips_moments() -> None:
    now_s = 0.0
    grid = pauses(0.1, lambda: now_s)
    assert next(grid) == pytest.approx(0.1)
    now_s = 0.1
    assert next(grid) == pytest.approx(0.1)
    now_s = 0.55  # the sample of 0.2 took until now
    assert next(grid) == 0  # the one of 0.5 is due
    assert next(grid) == pytest.approx(0.05)


def test_sampling_ends_when_there_is_nothing_left() -> None:
    calls, ended = [], threading.Event()

    def sample() -> bool:
        calls.append(1)
        if len(calls) == 3:
            ended.set()
        return len(calls) < 3

    sampler = SamplingThread("test", 0.001, sample)
    sampler.start()
    assert ended.wait(10)
    sampler.stop()
    assert len(calls) == 3


def test_sampling_can_be_stopped_before_the_first_sample() -> None:
    sampler = SamplingThread("test", 60, lambda: True)
    sampler.start()
    sampler.stop()


class Log:
    def __init__(self) -> None:
        self.samples = 0

    def sample(self) -> bool:
        self.samples += 1
        return True


class Samples(Detail, kw_only=True):
    samples: int


class Counting(PeriodicCollector[Log]):
    _period_s = 60.0
    fails = False

    def __init__(self) -> None:
        super().__init__()
        self.closed = 0

    def availability(self) -> Availability:
        return Availability()

    def _open(self, context: PassContext) -> Log:
        return Log()

    def _collected(self, log: Log) -> Collected:
        if self.fails:
            raise OSError("no table")
        return Collected(detail=Samples(samples=log.samples))

    def _close(self, log: Log) -> None:
        self.closed += 1


class Gauge(Counting):
    _reads_at_end = False


class Failing(Counting):
    fails = True


CONTEXT = PassContext("measure", 1, 1, Path(), {})


def test_what_counts_up_is_read_at_both_ends_and_a_gauge_at_the_beginning() -> None:
    for collector, samples in ((Counting(), 2), (Gauge(), 1)):
        collector.start(CONTEXT)
        assert collector.stop().detail == Samples(samples=samples)
        assert collector.closed == 1


def test_what_was_opened_is_given_back_when_the_table_fails() -> None:
    collector = Failing()
    collector.start(CONTEXT)
    with pytest.raises(OSError, match="no table"):
        collector.stop()
    assert collector.closed == 1


def test_a_periodic_collector_that_never_started_has_nothing() -> None:
    assert Counting().stop() == Collected()
