"""Waits followed to the thread that ended them."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis.lifetimes import FAR
from hwprof.analysis.states import ABSENT, BARRIER_LATENCY, BUSY, PREEMPTED
from hwprof.analysis.wait_chains import Piece, WaitChains
from tests.support.made_up_threads import MAIN, MS, OTHER, WORKER, Run, Stretch, long_layer, near

Off = tuple[int, int, int, str, int | None, int | None]
"""A thread's time off its processor: thread, begin, end, state, when it was woken, by whom."""


def chains(*rows: Off) -> WaitChains:
    schema = {"tid": pl.Int32, "begin_ns": pl.Int64, "end_ns": pl.Int64, "state": pl.String, "woken_ns": pl.Int64,
              "waker": pl.Int32}  # fmt: skip
    return WaitChains(pl.DataFrame(rows, schema=schema, orient="row"))


def causes(run: Run) -> dict[str | None, int]:
    return dict(run.path.group_by("cause").agg(pl.col("ns").sum()).iter_rows())


@pytest.mark.parametrize("why", ["pthread barrier", "lock", "condition", "GIL", "semaphore", "end of thread"])
def test_a_wait_for_a_thread_at_work_lies_on_that_one(why: str) -> None:
    """Of the issue: 30 ms of one, 50 ms of the other, then they meet."""
    run = long_layer({MAIN: [(30 * MS, BUSY), (20 * MS, why)], WORKER: [(50 * MS, BUSY)]}, 50 * MS)
    found = run.on_path()
    assert near(found, {(MAIN, BUSY): 30 * MS, (WORKER, BUSY): 20 * MS}), found
    assert BARRIER_LATENCY not in {state for _, state in found}
    assert causes(run) == {None: pytest.approx(30 * MS, abs=MS), why: 20 * MS}


def test_a_waker_that_waited_is_followed_to_its_own() -> None:
    threads: dict[int, list[Stretch]] = {
        MAIN: [(10 * MS, BUSY), (45 * MS, "semaphore")],
        WORKER: [(40 * MS, "condition"), (15 * MS, BUSY)],
        OTHER: [(10 * MS, "lock"), (30 * MS, BUSY), (15 * MS, "lock")],
    }
    run = long_layer(threads, 55 * MS)
    expected = {(MAIN, BUSY): 10 * MS, (OTHER, BUSY): 30 * MS, (WORKER, BUSY): 15 * MS}
    assert near(run.on_path(), expected), run.on_path()
    assert causes(run)["semaphore"] == 45 * MS, "the calling thread's reason, all the way"


@pytest.mark.parametrize("why", ["I/O", "sleep", PREEMPTED, "page fault"])
def test_what_keeps_the_waker_is_on_the_path(why: str) -> None:
    worker: list[Stretch] = [(20 * MS, BUSY), (30 * MS, why), (10 * MS, BUSY), (40 * MS, "condition")]
    run = long_layer({MAIN: [(10 * MS, BUSY), (50 * MS, "lock"), (40 * MS, BUSY)], WORKER: worker})
    expected = {(MAIN, BUSY): 50 * MS, (WORKER, BUSY): 20 * MS, (WORKER, why): 30 * MS}
    assert near(run.on_path(), expected), run.on_path()


def test_a_thread_that_never_waits_for_others_is_not_taken_for_the_waker() -> None:
    threads: dict[int, list[Stretch]] = {
        MAIN: [(30 * MS, BUSY), (40 * MS, "condition"), (30 * MS, BUSY)],
        WORKER: [(30 * MS, "condition"), (41 * MS, BUSY), (29 * MS, "condition")],
        OTHER: [(100 * MS, BUSY)],
    }
    found = long_layer(threads).on_path()
    assert near(found, {(MAIN, BUSY): 60 * MS, (WORKER, BUSY): 40 * MS}), found


def test_the_end_of_a_thread_is_that_of_the_one_which_ended() -> None:
    """Beside one that ran longer, and waits for others too."""
    threads: dict[int, list[Stretch]] = {
        MAIN: [(30 * MS, BUSY), (40 * MS, "end of thread"), (30 * MS, BUSY)],
        WORKER: [(40 * MS, ABSENT), (30 * MS, BUSY), (30 * MS, ABSENT)],
        OTHER: [(10 * MS, "condition"), (90 * MS, BUSY)],
    }
    found = long_layer(threads).on_path()
    assert found[WORKER, BUSY] == pytest.approx(30 * MS, abs=MS), "and before its creation, on who created it"
    assert found[OTHER, BUSY] == pytest.approx(10 * MS, abs=MS)


def test_where_nobody_ran_meanwhile_the_wait_is_the_threads_own() -> None:
    run = long_layer({MAIN: [(30 * MS, BUSY), (70 * MS, "lock")], WORKER: [(30 * MS, BUSY), (70 * MS, "sleep")]})
    assert near(run.on_path(), {(MAIN, BUSY): 30 * MS, (MAIN, "lock"): 70 * MS})
    assert causes(run).keys() == {None}


def test_a_recorded_waker_counts_whoever_else_ran() -> None:
    """Between the wake-up and its coming back the thread had no processor."""
    found = chains(
        (1, 20, 100, "lock", 90, 2), (2, 0, 40, "semaphore", 40, 3), (3, 95, FAR, "sleep", None, None)
    ).follow(1, 20, 100)  # fmt: skip
    assert found == [Piece(1, PREEMPTED, 90, 100), Piece(2, BUSY, 40, 90), Piece(3, BUSY, 20, 40)]


def test_where_wakers_are_recorded_nobody_is_guessed() -> None:
    """A timer, a device or another process ended that wait."""
    rows: list[Off] = [
        (1, 20, 100, "lock", None, None),
        (1, 120, 140, "lock", 140, 2),
        (2, 150, 160, "lock", None, None),
    ]
    assert chains(*rows).follow(1, 20, 100) == [Piece(1, "lock", 20, 100)]
    assert chains(*rows[:1], rows[2]).follow(1, 20, 100) == [Piece(2, BUSY, 20, 100)], "without any record one is"


def test_a_turn_of_waiting_for_the_interpreter_that_a_timer_ends_is_for_whoever_has_it() -> None:
    rows: list[Off] = [(1, 20, 25, "GIL", None, None), (1, 25, 30, "GIL", 30, 2), (2, 40, 50, "GIL", None, None)]
    assert chains(*rows).follow(1, 20, 25) == [Piece(2, BUSY, 20, 25)]


def test_of_a_part_of_a_wait_the_same_is_told() -> None:
    rows: list[Off] = [(1, 20, 100, "lock", None, None), (2, 0, 60, "sleep", None, None)]
    assert chains(*rows).follow(1, 30, 80) == [Piece(2, BUSY, 60, 80), Piece(2, "sleep", 30, 60)]


def test_a_wait_that_does_not_end_is_the_threads_own() -> None:
    assert chains((1, 20, FAR, "lock", None, None), (2, 0, 10, "sleep", None, None)).follow(1, 30, 80) == [
        Piece(1, "lock", 30, 80)
    ]


courses = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 30), st.sampled_from(["lock", "sleep", "GIL", PREEMPTED, "I/O"])),
    min_size=1,
    max_size=8,
)


@given(st.lists(courses, min_size=1, max_size=4), st.data())
def test_the_pieces_of_a_wait_are_all_of_it(threads: list[list[tuple[int, int, str]]], data: st.DataObject) -> None:
    """From its end to its begin, whoever is said, or recorded, to have woken whom."""
    rows: list[Off] = []
    record = data.draw(st.booleans())
    for tid, course in enumerate(threads, start=1):
        now = 0
        for work, length, state in course:
            now += work
            waker = data.draw(st.integers(1, len(threads))) if record else None
            woken = data.draw(st.integers(now, now + length)) if record else None
            rows.append((tid, now, now + length, state, woken, waker))
            now += length
    found = chains(*rows)
    for tid, begin, end, *_ in rows:
        pieces = found.follow(tid, begin, end)
        assert [one.end_ns for one in pieces] == [end, *(one.begin_ns for one in pieces[:-1])]
        assert pieces[-1].begin_ns == begin
