"""When a thread was there, away, and in which call."""

from __future__ import annotations

import numpy as np
import polars as pl

from hwprof.analysis.lifetimes import FAR, lives
from hwprof.analysis.states import ABSENT, BLOCKED, BUSY
from hwprof.analysis.thread_states import Inference, absences, closed, moments
from hwprof.run.schema import conform, empty
from tests.support.made_up_threads import (
    AT_WORK,
    WORKER,
    layers_of,
    spans_of,
)

SAMPLED = {"tid": pl.Int32, "time_ns": pl.Int64, "cpu_ns": pl.Int64, "code": pl.String}
LIVED = {"tid": pl.Int32, "born_ns": pl.Int64, "ended_ns": pl.Int64}
ONE, TWO = 1, 2


def lifetimes(*rows: tuple[int, int | None, int | None]) -> pl.DataFrame:
    return conform("lifetimes", pl.DataFrame(rows, schema=LIVED, orient="row"))


def switches(*rows: tuple[int, int | None, int | None]) -> pl.DataFrame:
    names = {"tid": pl.Int32, "out_ns": pl.Int64, "in_ns": pl.Int64}
    return conform("switches", pl.DataFrame(rows, schema=names, orient="row").with_columns(preempted=False))


def states(samples: pl.DataFrame, left: pl.DataFrame, lived: pl.DataFrame) -> dict[tuple[int, str], float]:
    """What two threads did from 0 to 100, by (thread, state)."""
    calls = [("a", 0, 100)]
    spans = spans_of(calls, [(0, 100)])
    away = absences(left, lives(samples, left, lived, None), samples, spans)
    inference = Inference.of(spans, layers_of(calls), [0], away)
    sampled = samples.with_columns(layer=pl.lit("a"), iteration=pl.lit(0, pl.Int32))
    found = moments(sampled, away, inference)
    rows = closed(found, inference.elapsed(), ["iteration"])
    return {(tid, state): ns for tid, state, ns in rows.select("tid", "state", "ns").iter_rows()}


def test_a_thread_is_there_from_its_creation_to_its_end() -> None:
    """What is known of it before its first record and after its last is not extended beyond these."""
    samples = pl.DataFrame([(ONE, 70, 10, "torch"), (TWO, 70, 10, "torch")], schema=SAMPLED, orient="row")
    left = switches((TWO, None, 60), (TWO, 80, None))
    lived = lifetimes((ONE, 20, 75), (TWO, 50, 85))
    assert states(samples, left, lived) == {
        (ONE, ABSENT): 45, (ONE, BUSY): 55, (TWO, ABSENT): 65, (TWO, BLOCKED): 15, (TWO, BUSY): 20,
    }  # fmt: skip


def test_one_that_was_there_all_the_time_was_away_before_it_came_back() -> None:
    samples = pl.DataFrame([(ONE, 70, 10, "torch")], schema=SAMPLED, orient="row")
    left = switches((ONE, None, 60), (ONE, 80, None))
    assert states(samples, left, lifetimes((ONE, None, None))) == {(ONE, BLOCKED): 80, (ONE, BUSY): 20}


def test_without_its_lifetime_a_thread_is_there_from_its_first_to_its_last_record() -> None:
    """As in runs that kept none. One that left its processor last of all is away from then on; after a sample comes the
    time to the next one."""
    samples = pl.DataFrame([(ONE, 70, 10, "torch"), (TWO, 70, 10, "torch")], schema=SAMPLED, orient="row")
    left = switches((TWO, None, 60), (TWO, 80, None))
    assert states(samples, left, empty("lifetimes")) == {
        (ONE, ABSENT): 80, (ONE, BUSY): 20, (TWO, ABSENT): 60, (TWO, BLOCKED): 20, (TWO, BUSY): 20,
    }  # fmt: skip


def test_the_calling_thread_is_there_always() -> None:
    samples = pl.DataFrame([(ONE, 70, 10, "torch")], schema=SAMPLED, orient="row")
    assert lives(samples, empty("switches"), lifetimes((ONE, 20, 30)), ONE).rows() == [(ONE, -FAR, FAR)]


def test_an_absence_that_has_lost_an_end_on_the_way_is_none() -> None:
    """Only the first one may lack its begin, and only the last one its end: it was away before, and is still."""
    edges = [(None, 5), (10, 20), (None, 30), (40, None), (50, 60), (70, None)]
    left = switches(*((WORKER, out, back) for out, back in edges))
    always = pl.DataFrame({"tid": [WORKER], "begin_ns": [-FAR], "end_ns": [FAR]}, schema_overrides={"tid": pl.Int32})
    found = absences(left, always, empty("samples"), empty("spans")).select("begin_ns", "end_ns", "state").rows()
    assert found == [(-FAR, 5, BLOCKED), (10, 20, BLOCKED), (50, 60, BLOCKED), (70, FAR, BLOCKED)]


def test_a_call_has_its_begin_and_not_its_end() -> None:
    calls = [("a", 0, 10), ("b", 10, 20)]
    inference = Inference.of(spans_of(calls, [(0, 20)]), layers_of(calls), [0], AT_WORK)
    first, *others = inference.calls(np.array([0, 9, 10, 19])).tolist()
    assert others[0] == first < others[1] == others[2]
