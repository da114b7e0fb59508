"""DRAM traffic from readings of counters: sums, times, and what a counter missed."""

from __future__ import annotations

import errno
from collections.abc import Iterable

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.uncore.controllers import READ, Group, Part, Plan
from collectors.uncore.traffic import Reading, TrafficLog
from hwprof.hardware.pmu import Code
from hwprof.run.notes import NoteKind
from tests.support.reported import texts

LINES = Part(Code(20, 5), 64.0, (READ, f"{READ}/socket-0"))
OTHER_LINES = Part(Code(20, 5), 64.0, (READ, f"{READ}/socket-1"))
NEAR, FAR = Group("uncore_imc_0", 0, (LINES,)), Group("uncore_imc_0", 56, (OTHER_LINES,))
ALWAYS = [(1_000, 1_000), (2_000, 2_000), (3_000, 3_000), (4_000, 4_000)]


def log_of(readings: dict[Group, Iterable[Reading | OSError]], clock: Iterable[int] | None = None) -> TrafficLog:
    by_group = {group: iter(readings) for group, readings in readings.items()}

    def read(group: Group) -> Reading:
        reading = next(by_group[group])
        if isinstance(reading, OSError):
            raise reading
        return reading

    ticks = iter(range(0, 10**9, 10) if clock is None else clock)
    return TrafficLog(Plan(tuple(readings)), read, lambda: next(ticks))


def readings(times: list[tuple[int, int]], *values: int) -> list[Reading | OSError]:
    return [(enabled, running, (value,)) for (enabled, running), value in zip(times, values, strict=True)]


def values(log: TrafficLog, name: str = READ) -> list[float]:
    return log.series().filter(name=name)["value"].to_list()


def test_a_sum_has_the_time_in_the_middle_of_its_readings() -> None:
    log = log_of(
        {NEAR: readings(ALWAYS[:2], 7, 9), FAR: readings(ALWAYS[:2], 1000, 1001)}, clock=[1_000, 1_040, 9_000, 9_100]
    )
    assert [log.sample() for _ in range(2)] == [True, True]
    assert log.series().drop("pass").rows() == [
        (1_020, READ, "B", 0.0),
        (1_020, f"{READ}/socket-0", "B", 0.0),
        (1_020, f"{READ}/socket-1", "B", 0.0),
        (9_050, READ, "B", 192.0),
        (9_050, f"{READ}/socket-0", "B", 128.0),
        (9_050, f"{READ}/socket-1", "B", 64.0),
    ]
    assert log.reading_us() == 0.07
    assert log.notes() == []


def test_what_a_counter_missed_is_filled_in_when_it_runs_again() -> None:
    times = [(1_000, 1_000), (2_000, 1_500), (3_000, 1_500), (4_000, 2_000)]
    log = log_of({NEAR: readings(times, 0, 10, 10, 20)})
    for _ in times:
        log.sample()
    assert values(log) == [0, 64 * 10 * 2, 64 * 10 * 2, 64 * (20 + 40)]
    assert texts(log.notes()) == [
        "the kernel multiplexed: 1 of 1 groups of counters ran for 33% of the time;"
        " what they missed is filled in at the same rate"
    ]


@pytest.mark.parametrize(("running_ns", "told"), [(1_000, False), (990, False), (989, True)])
def test_a_hundredth_of_the_time_may_be_missed_without_a_word(running_ns: int, told: bool) -> None:
    log = log_of({NEAR: readings([(0, 0), (1_000, running_ns)], 0, 5)})
    log.sample()
    log.sample()
    assert (NoteKind.MULTIPLEXED in {note.kind for note in log.notes()}) == told


def test_a_reading_takes_what_most_of_them_take() -> None:
    log = log_of({NEAR: readings(ALWAYS[:3], 0, 1, 2)}, [0, 3_000, 10_000, 13_000, 20_000, 90_000])
    assert log.reading_us() is None
    for _ in range(3):
        log.sample()
    assert log.reading_us() == 3


def test_a_counter_that_never_ran_makes_no_figure() -> None:
    never = [(1_000, 0), (2_000, 0)]
    log = log_of({NEAR: readings(ALWAYS[:2], 0, 5), FAR: readings(never, 0, 0)})
    log.sample()
    log.sample()
    assert set(log.series()["name"]) == {f"{READ}/socket-0"}
    assert texts(log.notes()) == [
        f"{READ}, {READ}/socket-1 not available: uncore_imc_0 on processor 56 never counted",
    ]


def test_a_counter_that_goes_back_adds_nothing_and_is_told() -> None:
    log = log_of({NEAR: readings(ALWAYS, 100, 90, 95, 96)})
    for _ in ALWAYS:
        log.sample()
    assert values(log) == [0, 0, 64 * 5, 64 * 6]
    assert texts(log.notes()) == ["uncore_imc_0 on processor 0: went backwards 1 times, which adds nothing"]


def test_a_sum_ends_where_one_of_its_counters_does() -> None:
    gone = OSError(errno.ENODEV, "No such device")
    log = log_of(
        {NEAR: [*readings(ALWAYS[:3], 0, 1, 2), gone], FAR: [*readings(ALWAYS[:2], 0, 1), gone, gone]},
    )
    assert [log.sample() for _ in ALWAYS] == [True, True, True, False]
    assert values(log) == [0, 128]
    assert values(log, f"{READ}/socket-0") == [0, 64, 128]
    assert values(log, f"{READ}/socket-1") == [0, 64]
    assert [(note.kind, note.subject) for note in log.notes()] == [
        (NoteKind.INCOMPLETE, f"{READ}, {READ}/socket-1"),
        (NoteKind.INCOMPLETE, f"{READ}/socket-0"),
    ]


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 10**8), st.integers(1, 10**8)), min_size=1, max_size=30))
def test_traffic_at_a_constant_rate_is_found_whole_whatever_runs(steps: list[tuple[int, int, int]]) -> None:
    """Each step: lines counted per ns of running, ns running, ns waiting while as much flows uncounted."""
    enabled = running = value = 0
    true_lines = 0
    points: list[Reading | OSError] = [(0, 0, (0,))]
    for rate, ran_ns, waited_ns in steps:
        enabled, running, value = enabled + ran_ns + waited_ns, running + ran_ns, value + rate * ran_ns
        true_lines += rate * (ran_ns + waited_ns)
        points.append((enabled, running, (value,)))
    log = log_of({NEAR: points})
    for _ in points:
        log.sample()
    assert values(log)[-1] == pytest.approx(64.0 * true_lines, rel=1e-9)
    assert pl.Series(values(log)).is_sorted()
