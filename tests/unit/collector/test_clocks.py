"""Foreign clocks onto the monotonic one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.collector import clocks


def test_the_snapshot_is_taken_at_one_moment() -> None:
    first, second = clocks.snapshot(), clocks.snapshot()
    assert second.monotonic_ns > first.monotonic_ns
    passed = second.monotonic_ns - first.monotonic_ns
    assert abs((second.boottime_ns - first.boottime_ns) - passed) < 1_000_000
    assert abs((second.realtime_ns - first.realtime_ns) - passed) < 1_000_000


@given(
    offset=st.integers(-(10**18), 10**18),
    drift_ppm=st.integers(-50, 50),
    width=st.integers(2, 20_000),
)
def test_offset_and_drift_are_found_again(offset: int, drift_ppm: int, width: int) -> None:
    start = 10**18
    marks = []
    for at in [0, 1_000, 2_000, 10**10, 10**10 + 1_000, 10**10 + 2_000]:
        monotonic = start + at + offset + at * drift_ppm // 10**6
        marks.append((start + at, monotonic - width // 2, monotonic + width - width // 2))
    record = clocks.fit("made", marks)
    for foreign, low, high in marks:
        assert low - 2 <= clocks.to_monotonic(record, foreign) <= high + 2
    assert record.error_ns <= width // 2 + 3


def test_a_short_time_gives_no_drift() -> None:
    record = clocks.fit("made", [(0, 90, 110), (1000, 1085, 1105)])
    assert record.drift == 0
    assert record.error_ns >= 5


def test_a_clock_that_does_not_drift_gets_no_drift_from_marks_that_tell_little() -> None:
    """Others had the processor while most were made: only two say more than that it was in these 80 ms."""
    offset, ms = 5_000_000_000, 1_000_000
    marks = [
        (at * ms, at * ms + offset - before * ms, at * ms + offset + after * ms)
        for at, before, after in ((0, 70, 10), (20, 60, 20), (40, 1, 1), (4000, 5, 75), (4020, 10, 70), (4040, 1, 2))
    ]
    record = clocks.fit("made", marks)
    assert record.drift == 0 and record.error_ns <= ms
    assert all(abs(clocks.to_monotonic(record, at) - at - offset) <= record.error_ns for at, _, _ in marks)


def test_no_marks_no_clock() -> None:
    with pytest.raises(ValueError, match="no mark"):
        clocks.fit("made", [])
