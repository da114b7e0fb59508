"""Each thread's times: of the iterations that it was there in, and of no others."""

from __future__ import annotations

import math

import pytest

from hwprof.analysis.states import ABSENT, BUSY, PREEMPTED
from tests.support.made_up_passes import times_of
from tests.support.made_up_threads import MAIN, MS, OTHER, WORKER, Stretch

FIVE = [(number * 100 * MS, (number + 1) * 100 * MS) for number in range(5)]
JOIN = "end of thread"
HELPED: dict[int, list[Stretch]] = {
    MAIN: [(230 * MS, BUSY), (40 * MS, JOIN), (230 * MS, BUSY)],
    WORKER: [(230 * MS, ABSENT), (40 * MS, BUSY), (230 * MS, ABSENT)],
}


def test_a_helper_of_one_iteration_is_shown_with_what_it_did_in_that_one() -> None:
    calling, helper = times_of(HELPED, FIVE).by_thread
    assert (calling["iterations"], helper["iterations"]) == (5, 1)
    assert helper["busy_ns"] == pytest.approx(40 * MS)
    assert helper["absent_ns"] == pytest.approx(60 * MS)
    assert helper["blocked_ns"] == {} and helper["unsampled_ns"] == 0
    assert helper["elapsed_ns"] == 100 * MS
    assert (calling["busy_ns"], calling["blocked_ns"]) == (pytest.approx(92 * MS), {JOIN: pytest.approx(8 * MS)})


def test_every_iteration_has_the_threads_that_were_there() -> None:
    found = times_of(HELPED, FIVE).by_iteration()
    assert [[one["tid"] for one in row["threads"]] for row in found] == [[1], [1], [1, 2], [1], [1]]
    (helper,) = [one for one in found[2]["threads"] if one["tid"] == WORKER]
    assert helper["states_ns"] == {ABSENT: pytest.approx(60 * MS), BUSY: pytest.approx(40 * MS)}
    for row in found:
        for one in row["threads"]:
            assert math.fsum(one["states_ns"].values()) == pytest.approx(row["elapsed_ns"])


def test_threads_that_are_there_one_after_the_other_are_one_at_a_time() -> None:
    """Five helpers that each do the work of one iteration, beside a calling thread that works all the time."""
    threads: dict[int, list[Stretch]] = {MAIN: [(500 * MS, BUSY)]}
    for number in range(5):
        course = [(number * 100 * MS, ABSENT), (100 * MS, BUSY), ((4 - number) * 100 * MS, ABSENT)]
        threads[OTHER + number] = [stretch for stretch in course if stretch[0]]
    found = times_of(threads, FIVE)
    assert found.threads_sharing() == 2
    assert found.efficiency() == pytest.approx(1)
    assert [one["busy_ns"] for one in found.by_thread] == [pytest.approx(100 * MS)] * 6
    assert [layer["largest_loss"] for layer in found.layers()] == [None]


def test_what_threads_waited_for_that_were_not_sampled_is_known_too() -> None:
    """One of them was there in one iteration, one waits all the time; preemption is no wait."""
    threads: dict[int, list[Stretch]] = {
        MAIN: [(200 * MS, BUSY)],
        WORKER: [(10 * MS, ABSENT), (60 * MS, "I/O"), (20 * MS, "sleep"), (110 * MS, ABSENT)],
        OTHER: [(5 * MS, PREEMPTED), (195 * MS, "I/O")],
    }
    times = times_of(threads, [(0, 100 * MS), (100 * MS, 200 * MS)])
    assert [one["tid"] for one in times.by_thread] == [MAIN]
    assert times.unsampled_threads == 2
    assert times.unsampled_blocked_ns() == {"I/O": (60 + 195) / 2 * MS, "sleep": 10 * MS}


def test_the_waits_of_sampled_threads_are_their_own() -> None:
    times = times_of({MAIN: [(100 * MS, BUSY)], WORKER: [(10 * MS, BUSY), (90 * MS, "lock")]}, [(0, 100 * MS)])
    assert (times.unsampled_threads, times.unsampled_blocked_ns()) == (0, {})
