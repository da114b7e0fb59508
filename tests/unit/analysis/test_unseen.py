"""What a thread did that was neither switched out nor sampled for long."""

from __future__ import annotations

import polars as pl
import pytest

from hwprof.analysis.lifetimes import FAR
from hwprof.analysis.states import ABSENT, BUSY, PREEMPTED, UNKNOWN
from hwprof.analysis.unseen import LEAST_NS, PERIODS, unseen
from hwprof.run.schema import conform, empty
from tests.support.made_up_passes import times_of
from tests.support.made_up_threads import MAIN, MS, OTHER, WORKER, Stretch, long_layer, near, spans_of

UNRECORDED = ABSENT
"""Between other states: neither samples nor switches."""

TID = 7
LONG = LEAST_NS + 10 * MS
PERIOD = MS


def found(
    *off: tuple[int, int], sampled: list[int], spans: pl.DataFrame | None = None, period_ns: int = PERIOD
) -> list[tuple[int, int]]:
    """Of a thread that was off its processor then, and sampled at these times."""
    names = {"tid": pl.Int32, "begin_ns": pl.Int64, "end_ns": pl.Int64}
    away = pl.DataFrame([(TID, *one) for one in off], schema=names, orient="row")
    lives = pl.DataFrame([(TID, -FAR, FAR)], schema=names, orient="row")
    # another thread, of which nothing is asked, says how long a period is
    samples = pl.DataFrame(
        [(TID, time, period_ns) for time in sampled] + [(TID + 1, 0, period_ns)],
        schema={"tid": pl.Int32, "time_ns": pl.Int64, "cpu_ns": pl.Int64},
        orient="row",
    )
    rows = unseen(samples, spans if spans is not None else empty("spans"), away, lives)
    assert set(rows["state"]) <= {UNKNOWN}
    return rows.select("begin_ns", "end_ns").rows()


def test_one_that_came_onto_a_processor_and_was_never_seen_again() -> None:
    assert found((-FAR, 5), sampled=[]) == [(5 + PERIOD, FAR)]


def test_one_that_worked_and_left_without_a_record() -> None:
    begin, end = 3 * MS, 3 * MS + LONG
    assert found((-FAR, 0), (end, FAR), sampled=[MS, 2 * MS, begin]) == [(begin + PERIOD, end - PERIOD)]
    assert found((-FAR, 0), (end + MS, FAR), sampled=[MS, 2 * MS, begin, end]) == [(begin + PERIOD, end - PERIOD)]


def test_one_that_works_is_seen() -> None:
    assert found((-FAR, 0), (LONG, FAR), sampled=list(range(0, LONG, PERIOD))) == []


def test_one_that_is_off_its_processor_is_seen() -> None:
    assert found((-FAR, 2 * MS), (3 * MS, LONG), (LONG + MS, FAR), sampled=[LONG + MS // 2]) == []


@pytest.mark.parametrize("period_ns", [PERIOD, 10 * MS])
def test_for_some_periods_a_thread_that_works_may_have_no_sample(period_ns: int) -> None:
    limit_ns = max(LEAST_NS, PERIODS * period_ns)
    assert found((-FAR, 0), (limit_ns, FAR), sampled=[], period_ns=period_ns) == []
    assert found((-FAR, 0), (limit_ns + 1, FAR), sampled=[], period_ns=period_ns) != []


def test_one_that_begins_and_ends_layers_is_seen() -> None:
    half = LEAST_NS - MS
    spans = spans_of([("a", 0, half)], [(0, half)]).with_columns(tid=pl.lit(TID, pl.Int32))
    off = ((-FAR, 0), (2 * half, FAR))
    assert found(*off, sampled=[]) != []
    assert found(*off, sampled=[], spans=conform("spans", spans)) == []


PHANTOM: list[Stretch] = [(5 * MS, PREEMPTED), (95 * MS, UNRECORDED)]
"""Created and gone to sleep before its switches were recorded; as runs of older versions have it."""


def test_a_thread_that_slept_unrecorded_is_not_what_others_waited_for() -> None:
    threads: dict[int, list[Stretch]] = {
        MAIN: [(30 * MS, BUSY), (60 * MS, "GIL"), (10 * MS, BUSY)],
        WORKER: [(40 * MS, "sleep"), (5 * MS, BUSY), (55 * MS, "sleep")],
        OTHER: [*PHANTOM[:1], (85 * MS, UNRECORDED), (10 * MS, "condition")],
    }
    path = long_layer(threads).on_path()
    assert not any(tid == OTHER and state == BUSY and ns > 2 * PERIOD for (tid, state), ns in path.items()), path
    alone = long_layer({MAIN: threads[MAIN], OTHER: PHANTOM}).on_path()
    assert near(alone, {(MAIN, BUSY): 40 * MS, (MAIN, "GIL"): 60 * MS}), alone


def test_what_nobody_knows_is_no_work_of_a_thread_that_worked_before() -> None:
    """Its samples are not stretched over the time in which it had none."""
    threads: dict[int, list[Stretch]] = {
        MAIN: [(100 * MS, BUSY)],
        WORKER: [(10 * MS, BUSY), (80 * MS, UNRECORDED), (10 * MS, "sleep")],
    }
    times = times_of(threads, [(0, 100 * MS)])
    _, worker = times.by_thread
    assert worker["busy_ns"] == pytest.approx(12 * MS, abs=2 * PERIOD)
    assert worker["unknown_ns"] == pytest.approx(78 * MS, abs=2 * PERIOD)
    assert worker["blocked_ns"] == {"sleep": 10 * MS}
