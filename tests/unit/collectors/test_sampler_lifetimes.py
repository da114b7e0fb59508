"""From when to when threads were there, and what they did before they were sampled."""

from __future__ import annotations

import polars as pl
import pytest

from collectors.sampler.lifetimes import Before, Lifetimes
from collectors.sampler.records import TaskEvent
from hwprof.run.schema import TABLES, conform

PID, TID, OTHER = 100, 101, 102
BORN = 1000


def switches(*rows: tuple[int, int | None, int | None]) -> pl.DataFrame:
    names = {"tid": pl.Int32, "out_ns": pl.Int64, "in_ns": pl.Int64}
    frame = pl.DataFrame(rows, schema=names, orient="row").with_columns(preempted=False, pid=PID)
    return conform("switches", frame)


def begun(
    before: Before | None, *rows: tuple[int, int | None, int | None], born_ns: int = BORN, counted: int = 1
) -> list[tuple[int | None, ...]]:
    """What is told of the thread's beginning, where it was sampled as ``before`` says and then left what records, and
    how much of the event it had then."""
    lifetimes = Lifetimes(sampling_since_ns=500)
    lifetimes.hear([TaskEvent(born_ns, PID, TID)], [])
    lifetimes.sampled(TID, before)
    lifetimes.finished(TID, counted)
    found = lifetimes.with_beginnings(switches(*rows), PID)
    assert found.schema == TABLES["switches"] and found["pid"].unique().to_list() in ([], [PID])
    return found.select("out_ns", "in_ns", "preempted").rows()


@pytest.mark.parametrize(
    ("before", "rows", "expected"),
    [
        (Before(1100, 0, 50, 0, True), [(TID, None, 1400)], [(1000, 1400, True)]),
        (Before(1500, 100, 200, 1, False), [(TID, None, 1900)], [(1000, 1200, True), (1300, 1900, False)]),
        (Before(1500, 100, 200, 1, True), [(TID, None, 1900)], [(1000, 1200, True), (1300, 1900, True)]),
        (Before(1500, 10, 200, 1, True), [(TID, 1700, 1800)], [(1000, 1200, True), (1700, 1800, False)]),
        (
            Before(1500, 100, 200, 2, True),
            [(TID, 1700, 1800)],
            [(1000, 1200, True), (1200, 1400, False), (1700, 1800, False)],
        ),
        (Before(1500, 100, 200, 2, True), [], [(1000, 1200, True), (1200, 1400, False)]),
        (Before(1500, 500, 0, 1, True), [], []),
        (None, [(TID, None, 1400)], [(None, 1400, False)]),
    ],
    ids=[
        "it has not run yet: it waits for a processor",
        "it ran and was blocked when its sampling began",
        "it ran and was preempted when its sampling began",
        "it is in its first turn, the last part of which is not accounted for yet",
        "it came back before its sampling began",
        "and leaves its processor no more",
        "it ran all the time",
        "the kernel keeps no account",
    ],
)
def test_before_a_threads_first_record_its_account_tells(
    before: Before | None, rows: list[tuple[int, int | None, int | None]], expected: list[tuple[int | None, ...]]
) -> None:
    found = begun(before, *rows)
    assert found == expected


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (Before(1500, 100, 200, 1, False, 1550), [(1000, 1200, True), (1300, None, False)]),
        (Before(1500, 100, 0, 1, False, 1550), [(1100, None, False)]),
        (Before(1500, 100, 200, 2, False, 1550), [(1000, 1200, True), (1300, None, False)]),
        (Before(1500, 100, 200, 1, True, 1550), [(1000, 1200, True), (1500, None, False)]),
        (Before(1500, 0, 0, 0, True, 1550), [(1000, 1500, True), (1500, None, False)]),
        (Before(1500, 0, 50, 0, True), [(1000, None, True)]),
        (Before(1500, 100, 200, 1, True), [(1000, 1200, True), (1300, None, True)]),
    ],
    ids=[
        "blocked",
        "created on a processor that was free",
        "blocked for the second time",
        "blocked after its account was taken",
        "which did not know that it ran",
        "never had a processor",
        "was preempted, and had none any more",
    ],
)
def test_a_thread_that_had_no_processor_since_is_not_at_work(
    before: Before, expected: list[tuple[int | None, ...]]
) -> None:
    """There is no switch of it: a thread that goes on sleeping has none, as one that goes on working."""
    assert begun(before, counted=0) == expected
    assert begun(before, (OTHER, 1600, 1700), counted=0)[: len(expected)] == expected
    assert not any(in_ns is None for _, in_ns, _ in begun(before, counted=5)), "one that works"


def test_what_a_thread_did_between_its_account_and_its_first_record_is_seen() -> None:
    """It was at work, left its processor before switches were recorded, and came back."""
    at_work = Before(1500, 100, 200, 1, True, 1550)
    assert begun(at_work, (TID, None, 1900)) == [(1000, 1200, True), (1500, 1900, False)]
    assert begun(at_work, (TID, None, 1540), (TID, 1545, 1900))[1] == (1300, 1540, True), "seen in its second wait"


def test_of_a_thread_that_was_there_before_sampling_began_nothing_is_added() -> None:
    assert begun(Before(1500, 100, 200, 1, False), (TID, None, 1900), born_ns=400)[0][:2] == (None, 1900)


def lived(lifetimes: Lifetimes, *, complete: bool = True) -> list[tuple[int, int | None, int | None]]:
    table = lifetimes.table(PID, [PID, TID, OTHER], complete=complete)
    assert table.schema == TABLES["lifetimes"]
    return table.select("tid", "born_ns", "ended_ns").rows()


def test_a_thread_lives_from_its_creation_to_its_end() -> None:
    """Whichever of them is heard of first: each processor has a ring of its own."""
    lifetimes = Lifetimes()
    lifetimes.hear([], [TaskEvent(90, PID, TID)])
    lifetimes.hear([TaskEvent(10, PID, TID), TaskEvent(20, PID, OTHER)], [])
    assert lived(lifetimes) == [(PID, None, None), (TID, 10, 90), (OTHER, 20, None)]


def test_where_records_were_lost_only_what_was_heard_is_told() -> None:
    lifetimes = Lifetimes()
    lifetimes.hear([TaskEvent(10, PID, TID), TaskEvent(20, PID, OTHER)], [TaskEvent(90, PID, TID)])
    assert lived(lifetimes, complete=False) == [(TID, 10, 90)]


def test_of_several_threads_with_one_number_nothing_is_told() -> None:
    lifetimes = Lifetimes()
    lifetimes.hear([TaskEvent(10, PID, TID), TaskEvent(30, PID, TID)], [TaskEvent(20, PID, TID)])
    assert lived(lifetimes) == [(PID, None, None), (OTHER, None, None)]
