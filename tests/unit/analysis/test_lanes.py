"""Threads that work one after the other: as many as work at a time."""

from __future__ import annotations

import pytest

from hwprof.analysis.lanes import in_lanes
from hwprof.analysis.sampled_layers import layer_rows
from hwprof.analysis.states import ABSENT, BUSY, WAITING
from tests.support.made_up_passes import times_of
from tests.support.made_up_threads import MAIN, MS, OTHER, WORKER, Stretch

JOIN = "end of thread"
LONG = 400 * MS
CALLING: list[Stretch] = [(2 * MS, BUSY), (LONG - 2 * MS, JOIN)]


def helpers(works: list[tuple[int, int]], exit_ns: int = 0) -> dict[int, list[Stretch]]:
    """A calling thread that only waits for helpers, each of which works from and to a millisecond and takes a while to
    end."""
    threads: dict[int, list[Stretch]] = {MAIN: CALLING, WORKER: [(LONG, WAITING)]}
    for number, (begin, end) in enumerate(works):
        work_ns = (end - begin) * MS + exit_ns
        after_ns = LONG - begin * MS - work_ns
        course = [(begin * MS, ABSENT), (work_ns, BUSY), (after_ns, ABSENT)]
        threads[OTHER + number] = [stretch for stretch in course if stretch[0] > 0]
    return threads


IN_TURN = [(0, 100), (100, 200), (200, 300), (300, 400)]
TWO_AT_A_TIME = [(0, 200), (0, 200), (200, 400), (200, 400)]
AT_ONCE = [(0, 400)] * 4


@pytest.mark.parametrize("exit_ns", [0, 4 * MS])
@pytest.mark.parametrize(
    ("works", "asked", "sharing", "efficiency", "imbalance"),
    [
        (IN_TURN, 2, 2, 0.5, 1.0),
        (IN_TURN, 1, 1, 1.0, 0.0),
        (TWO_AT_A_TIME, 2, 2, 1.0, 0.0),
        (TWO_AT_A_TIME, 1, 2, 1.0, 0.0),
        (AT_ONCE, 2, 4, 1.0, 0.0),
    ],
)
def test_a_layers_work_is_shared_by_as_many_as_work_at_a_time(
    works: list[tuple[int, int]], asked: int, sharing: int, efficiency: float, imbalance: float, exit_ns: int
) -> None:
    """A thread's end takes a while, in which the next one is at work already."""
    found = times_of(helpers(works, exit_ns), [(0, LONG)], asked)
    (layer,) = layer_rows(found.taken)
    assert layer["threads_sharing"] == sharing
    assert layer["efficiency"] == pytest.approx(efficiency, abs=0.05)
    assert layer["imbalance"] == pytest.approx(imbalance, abs=0.05)
    assert found.threads_sharing() == sharing
    assert found.efficiency() == pytest.approx(efficiency, abs=0.05)
    working = {one["tid"] for one in layer["threads"] if one["busy_ns"]}
    assert working == {MAIN, *range(OTHER, OTHER + 4)}, "each is listed by itself"


def test_threads_that_were_there_before_and_after_continue_nobodys_work() -> None:
    """Two of a pool that take turns are two: each could have worked all the time."""
    turns: list[Stretch] = [(100 * MS, BUSY), (100 * MS, "lock")] * 2
    threads: dict[int, list[Stretch]] = {MAIN: CALLING, OTHER: turns, OTHER + 1: turns[1:] + turns[:1]}
    assert times_of(threads, [(0, LONG)]).taken.lanes == {tid: tid for tid in threads}


def test_a_calling_thread_that_works_beside_successive_ones_is_one_of_two() -> None:
    threads = helpers(IN_TURN) | {MAIN: [(LONG, BUSY)]}
    found = times_of(threads, [(0, LONG)], asked=1)
    (layer,) = layer_rows(found.taken)
    assert (layer["threads_sharing"], layer["efficiency"]) == (2, pytest.approx(1, abs=0.05))


def test_what_successive_threads_lose_most_to_is_that_there_is_one_at_a_time() -> None:
    """Of two that were asked for, whoever it is that works."""
    threads = helpers(IN_TURN) | {MAIN: [(LONG, WAITING)]}
    (layer,) = times_of(threads, [(0, LONG)]).layers()
    assert layer["largest_loss"] == "single-threaded: 100% on one of 2"


def test_a_lanes_times_add_up_to_the_elapsed_time() -> None:
    states = [(3, BUSY, 40.0, 4), (3, ABSENT, 60.0, 0), (4, BUSY, 50.0, 5), (4, ABSENT, 50.0, 0), (1, BUSY, 100.0, 9)]
    found = in_lanes(states, {3: 3, 4: 3, 1: 1}, 100.0)
    assert sorted(found) == [(1, BUSY, 100.0, 9), (3, ABSENT, 10.0, 0), (3, BUSY, 90.0, 9)]
