from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.shared.periodic_sampling import SamplingThread, pauses


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
