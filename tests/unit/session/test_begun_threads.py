"""Threads that begin in an iteration: when they were there, and what they took."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import numpy as np
import polars as pl
import pytest

from hwprof.analysis.uncounted import hide
from hwprof.run.process_events import BEGUN_THREADS_CPU_TIME, WHOLE_PROCESS_TID
from hwprof.session.begun_threads import BODY, BegunThread, BegunThreads
from hwprof.session.pass_tables import begun_threads
from hwprof.session.span_rows import CountedSpans
from tests.support.small_tables import spans

MS = 1_000_000


@pytest.fixture
def threads() -> Iterator[BegunThreads]:
    found = BegunThreads()
    before = getattr(threading.Thread, BODY)
    found.watch()
    yield found
    found.stop()
    assert getattr(threading.Thread, BODY) is before


def spin(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


class _Own(threading.Thread):
    def run(self) -> None:
        spin(0.01)


@pytest.mark.parametrize("kind", [lambda: threading.Thread(target=spin, args=(0.01,)), _Own])
def test_a_thread_that_ends_is_told_with_what_it_took(kind: type[threading.Thread], threads: BegunThreads) -> None:
    threads.forget()
    began_ns = time.monotonic_ns()
    thread = kind()
    thread.start()
    thread.join()
    (found,) = threads.taken()
    assert began_ns <= found.begin_ns < found.end_ns <= time.monotonic_ns()
    assert 10 * MS <= found.cpu_ns <= found.end_ns - found.begin_ns + 10 * MS
    threads.forget()
    assert not threads.taken()


def test_one_that_is_still_there_is_told_until_now_and_counted_from_the_next_iteration_on(
    threads: BegunThreads,
) -> None:
    threads.forget()
    end = threading.Event()
    spun = threading.Event()

    def work() -> None:
        spin(0.005)
        spun.set()
        end.wait()

    thread = threading.Thread(target=work)
    thread.start()
    spun.wait()
    assert [one.cpu_ns >= 5 * MS for one in threads.taken()] == [True]
    threads.forget()
    end.set()
    thread.join()
    assert not threads.taken()


def test_one_that_fails_is_told_as_well(threads: BegunThreads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    threads.forget()
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    assert len(threads.taken()) == 1


def test_each_span_has_what_the_threads_took_that_were_there_in_it() -> None:
    table = spans(
        [
            (0, None, 0, "iteration", "iteration 0", 0, 100 * MS),
            (1, 0, 0, "layer", "a", 10 * MS, 40 * MS),
            (2, 0, 0, "layer", "b", 50 * MS, 52 * MS),
            (3, 0, 0, "layer", "c", 60 * MS, 90 * MS),
            (4, None, 1, "iteration", "iteration 1", 200 * MS, 300 * MS),
        ]
    )
    counted = CountedSpans(np.array([(0, 0, 0, 1), (1, 0, 0, 1), (2, 0, 0, 1), (4, 1, 0, 1)]))
    begun = {0: [BegunThread(12 * MS, 30 * MS, 15 * MS), BegunThread(35 * MS, 100 * MS, 20 * MS)]}
    found = begun_threads(table, counted, begun)
    assert dict(found.select("span", pl.col("value") // MS).iter_rows()) == {0: 35, 1: 20, 2: 2}
    assert set(found["event"]) == {BEGUN_THREADS_CPU_TIME} and set(found["tid"]) == {WHOLE_PROCESS_TID}
    assert begun_threads(table, counted, {}).is_empty()


def test_counts_that_lack_much_of_a_layers_work_are_no_figures() -> None:
    rows = [
        ("a", "task-clock", 10 * MS), ("a", "page-faults", 1), ("a", BEGUN_THREADS_CPU_TIME, 30 * MS),
        ("b", "task-clock", 10 * MS), ("b", BEGUN_THREADS_CPU_TIME, MS // 10),
        ("c", "page-faults", 5),
    ]  # fmt: skip
    counts = pl.DataFrame(rows, schema=["owner", "event", "value"], orient="row").with_columns(
        iteration=pl.lit(0, pl.Int32),
        **{name: pl.col("value").cast(pl.Float64) for name in ("scaled", "scaled_main", "scaled_workers")},
    )
    shown, lacking = hide(counts)
    assert lacking.select("owner", "uncounted_ns").rows() == [("a", 30 * MS)]
    known = {(owner, event): value for owner, event, value in shown.select("owner", "event", "scaled").iter_rows()}
    assert known == {
        ("a", "task-clock"): None, ("a", "page-faults"): None, ("b", "task-clock"): 10 * MS, ("c", "page-faults"): 5,
    }  # fmt: skip
