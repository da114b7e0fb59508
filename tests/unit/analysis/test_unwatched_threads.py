"""Where threads were at work whose allocations torch's profiler does not see."""

from __future__ import annotations

import polars as pl
from polars.testing import assert_frame_equal

from hwprof.analysis import unwatched_threads as threads
from hwprof.analysis.unwatched_threads import SCHEMA
from hwprof.run.process_events import BEGUN_THREADS_CPU_TIME, WHOLE_PROCESS_TID
from hwprof.run.schema import TABLES, empty
from tests.support.small_tables import MAIN, WORKER, counts, spans

THREAD = 12
CALLS = [
    (0, None, 0, "stage", "inference", 0, 100),
    (1, 0, 0, "layer", "", 10, 90),
    (2, 1, 0, "layer", "a", 20, 60),
    (3, 1, 0, "layer", "b", 70, 80),
    (4, None, 1, "stage", "inference", 200, 300),
    (5, 4, 1, "layer", "a", 220, 260),
]


def begun(*numbers: int) -> pl.DataFrame:
    return counts([(0, number, WHOLE_PROCESS_TID, BEGUN_THREADS_CPU_TIME, 7) for number in numbers])


def lives(*rows: tuple[int, int | None, int | None]) -> pl.DataFrame:
    names = ["tid", "born_ns", "ended_ns"]
    found = [dict(zip(names, row, strict=True)) | {"pass": "measure", "pid": MAIN} for row in rows]
    return pl.DataFrame(found, schema=TABLES["lifetimes"])


def of_begun(lifetimes: pl.DataFrame, told: pl.DataFrame, team: frozenset[int] = frozenset()) -> list[tuple[int, ...]]:
    return threads.of_begun(spans(CALLS), lifetimes, told, {MAIN}, team).rows()


def test_a_thread_works_until_its_layer_ends_though_the_kernel_takes_it_down_later() -> None:
    assert of_begun(lives((THREAD, 30, 75)), begun(0, 1, 2)) == [(30, 60)]


def test_a_thread_that_stays_is_there_for_all_that_follows() -> None:
    assert of_begun(lives((THREAD, 30, 280), (THREAD + 1, 30, 500)), begun(0, 1, 2)) == [(30, 60), (30, 500)]


def test_threads_of_whoever_measures_are_not_the_models() -> None:
    assert of_begun(lives((THREAD, 150, None), (THREAD + 1, None, None), (MAIN, 30, None)), begun()) == []


def test_a_team_that_no_thread_of_pythons_began_only_computes() -> None:
    team = frozenset({WORKER})
    assert of_begun(lives((WORKER, 30, None)), begun(), team) == []
    assert of_begun(lives((WORKER, 30, 61)), begun(0, 1, 2), team) == [(30, 60)], "the team of a thread that it began"


def test_without_lifetimes_all_of_the_innermost_spans_with_such_threads_count() -> None:
    assert of_begun(empty("lifetimes"), begun(0, 1, 2)) == [(20, 60)]
    assert of_begun(empty("lifetimes"), begun(0, 1)) == [(10, 90)]


def test_samples_tell_of_threads_of_before_that_are_no_team() -> None:
    sampled = pl.DataFrame({"tid": [MAIN, WORKER, THREAD, THREAD + 1], "time_ns": [25, 25, 26, 27]}).cast(
        {"tid": pl.Int32}
    )
    found = threads.of_samples(sampled, lives((THREAD + 1, 20, None)), {MAIN}, {WORKER})
    assert found.rows() == [(26, 27)]


def test_who_runs_python_is_no_mere_worker_of_a_team() -> None:
    switches = pl.DataFrame({"tid": [WORKER, THREAD], "reason": ["barrier", "GIL"]})
    frames = pl.DataFrame({"tid": [THREAD + 1]})
    assert threads.computing({WORKER, THREAD, THREAD + 1}, switches, frames) == {WORKER}


def test_calls_on_threads_that_nobody_watches() -> None:
    calls = spans(CALLS).with_columns(tid=pl.when(pl.col("path") == "b").then(THREAD).otherwise("tid").cast(pl.Int32))
    watched = threads.watched_threads(calls, empty("allocations"), MAIN)
    assert threads.of_calls(calls, watched).rows() == [(70, 80)]


def test_times_are_merged_and_met() -> None:
    times = threads.merged(
        *(pl.DataFrame(rows, schema=SCHEMA, orient="row") for rows in ([(5, 9), (8, 12)], [(20, 21)]))
    )
    assert_frame_equal(times, pl.DataFrame([(5, 12), (20, 21)], schema=SCHEMA, orient="row"))
    asked = pl.DataFrame([(0, 5), (0, 6), (12, 20), (11, 13), (6, 7), (20, 40), (21, 22)], schema=SCHEMA, orient="row")
    assert threads.met(asked, times).to_list() == [False, True, False, True, True, True, False]
    assert not threads.met(asked, threads.merged(times.clear())).any()
