"""When a thread was there, away, and in which call."""

from __future__ import annotations

import numpy as np
import polars as pl

from hwprof.analysis.states import ABSENT, BLOCKED, BUSY
from hwprof.analysis.thread_states import FAR, Inference, absences, closed, moments
from hwprof.run.schema import conform
from tests.support.made_up_threads import (
    WORKER,
    layers_of,
    spans_of,
)


def test_a_thread_is_not_there_before_it_is_heard_of() -> None:
    types = {"tid": pl.Int32, "time_ns": pl.Int64, "cpu_ns": pl.Int64, "code": pl.String}
    samples = pl.DataFrame([(1, 70, 10, "torch")], schema=types, orient="row")
    switches = conform(
        "switches", pl.DataFrame({"tid": [2, 2], "out_ns": [None, 80], "in_ns": [60, None], "preempted": [None, False]})
    )
    calls = [("a", 0, 100)]
    inference = Inference.of(spans_of(calls, [(0, 100)]), layers_of(calls), [0])
    sampled = pl.concat([samples, samples.with_columns(tid=pl.lit(2, pl.Int32))]).with_columns(
        layer=pl.lit("a"), iteration=pl.lit(0, pl.Int32)
    )
    rows = closed(moments(sampled, switches, inference), inference.elapsed(), ["iteration"])
    found = {(tid, state): ns for tid, state, ns in rows.select("tid", "state", "ns").iter_rows()}
    assert found == {(1, ABSENT): 60, (1, BUSY): 40, (2, BLOCKED): 80, (2, BUSY): 20}


def test_an_absence_that_has_lost_an_end_on_the_way_is_none() -> None:
    """Only the first one may lack its begin, and only the last one its end: it was away before, and is still."""
    edges = [(None, 5), (10, 20), (None, 30), (40, None), (50, 60), (70, None)]
    ends = {"out_ns": [out for out, _ in edges], "in_ns": [back for _, back in edges]}
    switches = conform("switches", pl.DataFrame({"tid": [WORKER] * len(edges), **ends, "preempted": False}))
    sampled = pl.DataFrame(schema={"tid": pl.Int32, "time_ns": pl.Int64, "cpu_ns": pl.Int64})
    found = absences(switches, sampled).select("begin_ns", "end_ns", "state").rows()
    assert found == [(-FAR, 5, BLOCKED), (10, 20, BLOCKED), (50, 60, BLOCKED), (70, FAR, BLOCKED)]


def test_a_call_has_its_begin_and_not_its_end() -> None:
    calls = [("a", 0, 10), ("b", 10, 20)]
    inference = Inference.of(spans_of(calls, [(0, 20)]), layers_of(calls), [0])
    first, *others = inference.calls(np.array([0, 9, 10, 19])).tolist()
    assert others[0] == first < others[1] == others[2]
