"""Threads through the inference: what each did adds up to the time; the path lies where nothing can be shortened."""

from __future__ import annotations

import time

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwprof.analysis.critical_path import path_moments
from hwprof.analysis.lifetimes import lives
from hwprof.analysis.states import BARRIER_LATENCY, BLOCKED, BUSY, PREEMPTED, UNOBSERVED, WAITING
from hwprof.analysis.thread_states import MOMENTS, Inference, absences, closed, moments
from hwprof.run.schema import empty
from tests.support.made_up_threads import (
    MAIN,
    MS,
    OTHER,
    WORKER,
    Run,
    Stretch,
    layers_of,
    long_layer,
    near,
    spans_of,
)


def test_the_path_follows_the_thread_that_is_waited_for() -> None:
    run = long_layer({MAIN: [(40 * MS, BUSY), (60 * MS, WAITING)], WORKER: [(90 * MS, BUSY), (10 * MS, WAITING)]})
    assert near(run.on_path(), {(MAIN, BUSY): 40 * MS, (WORKER, BUSY): 50 * MS, (MAIN, BARRIER_LATENCY): 10 * MS})
    assert near(run.states(MAIN), {BUSY: 40 * MS, WAITING: 60 * MS})
    assert near(run.states(WORKER), {BUSY: 90 * MS, WAITING: 10 * MS})


def test_of_several_at_work_the_one_that_works_longest_is_waited_for() -> None:
    threads = {
        MAIN: [(10 * MS, BUSY), (90 * MS, WAITING)],
        WORKER: [(60 * MS, BUSY), (40 * MS, WAITING)],
        OTHER: [(95 * MS, BUSY), (5 * MS, WAITING)],
    }
    handed = {(MAIN, BUSY): 10 * MS, (MAIN, BARRIER_LATENCY): 5 * MS}
    assert near(long_layer(threads).on_path(), {**handed, (OTHER, BUSY): 85 * MS})
    apart = threads | {OTHER: [(100 * MS, BUSY)]}
    expected = {(MAIN, BUSY): 10 * MS, (WORKER, BUSY): 50 * MS, (MAIN, BARRIER_LATENCY): 40 * MS}
    assert near(long_layer(apart).on_path(), expected), "a thread that never waits for the team is not in it"


@pytest.mark.parametrize("why", [PREEMPTED, "I/O", "page fault", "lock"])
def test_a_thread_that_is_kept_from_its_work_holds_the_path(why: str) -> None:
    run = long_layer(
        {
            MAIN: [(20 * MS, BUSY), (80 * MS, WAITING)],
            WORKER: [(30 * MS, BUSY), (50 * MS, why), (15 * MS, BUSY), (5 * MS, WAITING)],
        }
    )
    expected = {(MAIN, BUSY): 20 * MS, (WORKER, BUSY): 25 * MS, (WORKER, why): 50 * MS, (MAIN, BARRIER_LATENCY): 5 * MS}
    assert near(run.on_path(), expected)
    assert run.states(WORKER)[why] == 50 * MS


@pytest.mark.parametrize(
    ("stronger", "weaker"), [(BUSY, PREEMPTED), (BUSY, "I/O"), (PREEMPTED, "I/O"), (PREEMPTED, "lock")]
)
@pytest.mark.parametrize("of", [(WORKER, OTHER), (OTHER, WORKER)])
def test_of_several_that_are_waited_for_the_one_nearest_to_work_holds_the_path(
    of: tuple[int, int], stronger: str, weaker: str
) -> None:
    run = long_layer(
        {
            MAIN: [(20 * MS, BUSY), (60 * MS, WAITING)],
            of[0]: [(20 * MS, BUSY), (30 * MS, stronger), (30 * MS, WAITING)],
            of[1]: [(20 * MS, BUSY), (50 * MS, weaker), (10 * MS, WAITING)],
        },
        80 * MS,
    )
    expected = {(of[0], stronger): 30 * MS, (of[1], weaker): 20 * MS, (MAIN, BARRIER_LATENCY): 10 * MS}
    assert near(run.on_path(), {(MAIN, BUSY): 20 * MS, **expected})


@pytest.mark.parametrize(
    ("worker", "others_begin", "expected"),
    [
        ([(9_600_000, BUSY), (10_400_000, WAITING)], 20 * MS, BARRIER_LATENCY),
        ([(20 * MS, WAITING)], 10_400_000, UNOBSERVED),
        ([(20 * MS, BUSY), (MS, WAITING)], 10_400_000, BUSY),
    ],
    ids=["a call's own sample tells more than a nearer one", "waiting elsewhere tells nothing", "work goes on"],
)
def test_what_is_known_of_another_thread_in_a_short_call(
    worker: list[Stretch], others_begin: int, expected: str
) -> None:
    """The calling thread's sample at 9.7 ms is the first one in its call, the worker's are at 9.5 and 10.5 ms."""
    calls = [("a", 0, 9_600_000), ("b", 9_600_000, others_begin), ("c", others_begin, 21 * MS)]
    main = [(200_000, "sleep"), (9_400_000, BUSY), (11 * MS, WAITING)]
    path = Run({MAIN: main, WORKER: worker}, calls, [(0, 21 * MS)]).path
    (doing,) = path.filter(pl.col("time_ns") == 9_700_000)["doing"]
    assert doing == expected


@pytest.mark.parametrize(("why", "pieces"), [("barrier", 3), (PREEMPTED, 3), ("I/O", 1), ("lock", 1)])
def test_a_wait_for_others_is_looked_at_in_pieces(why: str, pieces: int) -> None:
    run = long_layer({MAIN: [(MS, BUSY), (3 * MS, why), (MS, BUSY)]}, 5 * MS)
    found = run.path.filter(~pl.col("sampled")).select("begin_ns", "time_ns", "ns")
    length = 3 * MS // pieces
    at = [MS + length * number for number in range(pieces)]
    looked = [begin + length // 2 if pieces > 1 else begin + length for begin in at]
    assert found.rows() == [(begin, when, length) for begin, when in zip(at, looked, strict=True)]


def test_at_the_very_edges_of_an_absence_it_holds_from_its_begin_and_not_at_its_end() -> None:
    """The calling thread's samples lie half a period after whole ones: at both edges of the worker's absence."""
    half = MS // 2
    run = long_layer(
        {MAIN: [(5 * MS, WAITING)], WORKER: [(MS + half, BUSY), (MS, "I/O"), (MS + half, BUSY), (MS, WAITING)]},
        5 * MS,
    )
    at = dict(zip(run.path["time_ns"], run.path.select("on", "doing").rows(), strict=True))
    assert at[MS + half] == (WORKER, "I/O")
    assert at[2 * MS + half] == (WORKER, BUSY)


@pytest.mark.parametrize("why", [PREEMPTED, "I/O", "sleep", "page fault"])
def test_what_keeps_the_calling_thread_is_its_own(why: str) -> None:
    run = long_layer({MAIN: [(20 * MS, BUSY), (80 * MS, why)], WORKER: [(95 * MS, BUSY), (5 * MS, WAITING)]})
    assert near(run.on_path(), {(MAIN, BUSY): 20 * MS, (MAIN, why): 80 * MS})


def test_waits_that_sleep_are_followed_like_those_that_spin() -> None:
    """A barrier that gave up spinning; a worker that sleeps in its own barrier has nothing to do."""
    run = long_layer(
        {
            MAIN: [(20 * MS, BUSY), (80 * MS, "barrier")],
            WORKER: [(50 * MS, BUSY), (1 * MS, WAITING), (49 * MS, "barrier")],
        }
    )
    assert near(run.on_path(), {(MAIN, BUSY): 20 * MS, (WORKER, BUSY): 30 * MS, (MAIN, BARRIER_LATENCY): 50 * MS})


def test_a_lock_leads_to_whoever_is_at_work_in_the_process() -> None:
    run = long_layer({MAIN: [(20 * MS, BUSY), (80 * MS, "GIL")], OTHER: [(70 * MS, BUSY), (30 * MS, "sleep")]})
    assert near(run.on_path(), {(MAIN, BUSY): 20 * MS, (OTHER, BUSY): 50 * MS, (MAIN, "GIL"): 30 * MS})


def test_without_samples_of_others_in_a_call_nobody_is_accused() -> None:
    calls = [("a", 0, 10 * MS), ("b", 10 * MS, 20 * MS)]
    threads = {MAIN: [(10 * MS, BUSY), (10 * MS, WAITING)], WORKER: [(9 * MS, WAITING), (11 * MS, PREEMPTED)]}
    assert near(Run(threads, calls, [(0, 20 * MS)]).on_path(), {(MAIN, BUSY): 10 * MS, (WORKER, PREEMPTED): 10 * MS})
    nothing = {
        MAIN: [(10 * MS, BUSY), (10 * MS, WAITING)],
        WORKER: [(9 * MS, WAITING), (11 * MS - 9, BLOCKED), (9, BUSY)],
    }
    found = Run(nothing, calls, [(0, 20 * MS)]).on_path()
    assert near(found, {(MAIN, BUSY): 10 * MS, (MAIN, UNOBSERVED): 10 * MS}), found


def test_a_thread_that_is_taken_off_while_it_waits_holds_nobody_up() -> None:
    """Neither the calling thread nor the other ones, as long as there is somebody at work."""
    course = [(20 * MS, BUSY), (10 * MS, WAITING), (40 * MS, PREEMPTED), (10 * MS, WAITING), (20 * MS, BUSY)]
    run = long_layer({MAIN: course, WORKER: [(80 * MS, BUSY), (20 * MS, WAITING)]})
    assert near(run.on_path(), {(MAIN, BUSY): 40 * MS, (WORKER, BUSY): 60 * MS})
    alone = long_layer({MAIN: course, WORKER: [(30 * MS, BUSY), (70 * MS, WAITING)]})
    expected = {
        (MAIN, BUSY): 40 * MS,
        (WORKER, BUSY): 10 * MS,
        (MAIN, BARRIER_LATENCY): 10 * MS,
        (MAIN, PREEMPTED): 40 * MS,
    }
    assert near(alone.on_path(), expected)


def test_one_that_is_taken_off_while_it_waits_for_nobody_known_is_kept_by_that() -> None:
    calls = [("a", 0, 10 * MS), ("b", 10 * MS, 20 * MS)]
    main = [(10 * MS, BUSY), (3 * MS, WAITING), (4 * MS, PREEMPTED), (3 * MS, WAITING)]
    worker = [(9 * MS, WAITING), (11 * MS - 9, BLOCKED), (9, BUSY)]
    found = Run({MAIN: main, WORKER: worker}, calls, [(0, 20 * MS)]).on_path()
    assert near(found, {(MAIN, BUSY): 10 * MS, (MAIN, UNOBSERVED): 6 * MS, (MAIN, PREEMPTED): 4 * MS}), found


def test_many_short_calls_add_up() -> None:
    """Layers far shorter than the sampling period: the calling thread's own waits are exact sums, and who is waited for
    is told by the calls in which both were seen."""
    calls, threads = [], {MAIN: [], WORKER: []}  # type: ignore[var-annotated]
    for number in range(2000):
        begin = number * 300_000
        calls.append(("a", begin, begin + 300_000))
        threads[MAIN] += [(180_000, BUSY), (120_000, WAITING)]
        threads[WORKER] += [(100_000, WAITING), (200_000, BUSY)]
    run = Run(threads, calls, [(0, 2000 * 300_000)], period_ns=1_001_001)
    whole = 2000 * 300_000
    assert run.states(MAIN)[WAITING] == pytest.approx(0.4 * whole, rel=0.02)
    path = run.on_path()
    assert path[MAIN, BUSY] == pytest.approx(0.6 * whole, rel=0.02)
    assert path.get((MAIN, BARRIER_LATENCY), 0) < 0.02 * whole
    assert path[WORKER, BUSY] + path.get((MAIN, UNOBSERVED), 0) == pytest.approx(0.4 * whole, rel=0.05)


stretches = st.lists(
    st.tuples(
        st.integers(0, 5 * MS),
        st.sampled_from([BUSY, WAITING, PREEMPTED, BLOCKED, "barrier", "lock", "I/O", "sleep"]),
    ),
    max_size=30,
)


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from([MAIN, WORKER, OTHER]), stretches, min_size=1),
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 3 * MS), st.integers(1, 3 * MS)), min_size=1, max_size=20
    ),
    st.integers(1, 19),
    st.floats(0.01, 1),
    st.sampled_from(["iteration", "layer"]),
)
def test_times_of_every_thread_and_of_the_path_add_up_to_the_elapsed_time(
    threads: dict[int, list[Stretch]],
    course: list[tuple[str, int, int]],
    cut: int,
    phase: float,
    by: str,
) -> None:
    """Whatever threads did, however layers and iterations lie, and whatever of it samples met."""
    now, calls = 0, []
    for path, pause, length in course:
        calls.append((path, now + pause, now + pause + length))
        now += pause + length
    middle = calls[min(cut, len(calls) - 1)][1]
    iterations = [(0, middle), (middle, now)] if middle else [(0, now)]
    run = Run(threads, calls, iterations, phase=phase)
    elapsed = dict(run.elapsed.group_by(by).agg(pl.col("elapsed_ns").sum()).iter_rows())
    assert sum(elapsed.values()) == now
    for rows in (run.moments, run.path):
        found = closed(rows, run.elapsed, [by])
        assert (found["ns"] >= 0).all()
        for (tid,), mine in found.group_by(["tid"]):
            sums = dict(mine.group_by(by).agg(pl.col("ns").sum()).iter_rows())
            assert sums == pytest.approx(elapsed, abs=1e-3), tid
    assert run.path.select(pl.col("ns").sum()).item() == run.moments.filter(pl.col("tid") == MAIN)["ns"].sum()
    assert run.moments.schema == MOMENTS


def test_a_million_samples_take_seconds() -> None:
    count, threads = 250_000, 4
    rng = np.random.default_rng(0)
    frames = [
        pl.DataFrame(
            {
                "tid": np.full(count, tid, dtype=np.int32),
                "time_ns": np.sort(rng.integers(0, count * MS, count)),
                "cpu_ns": np.full(count, MS),
                "code": np.where(rng.random(count) < 0.3, "openmp", "torch"),
            }
        )
        for tid in range(1, threads + 1)
    ]
    calls = [("a" if number % 2 else "b", number * 10 * MS, (number + 1) * 10 * MS) for number in range(count // 10)]
    spans = spans_of(calls, [(0, count * MS)])
    sampled = pl.concat(frames).with_columns(layer=pl.lit("a"), iteration=pl.lit(0, pl.Int32))
    begin_s = time.process_time()
    nothing = empty("switches")
    lived = lives(sampled, nothing, empty("lifetimes"), MAIN)
    away = absences(nothing, lived, sampled, spans)
    inference = Inference.of(spans, layers_of(calls), [0], away)
    path = path_moments(moments(sampled, away, inference), MAIN, away)
    closed(path, inference.elapsed(), ["layer"])
    assert time.process_time() - begin_s < 10
    assert path.height == count
