"""Layers that another program has watched, among the spans of PyTorch's modules."""

from __future__ import annotations

from itertools import count

import polars as pl
import pytest

from hwprof.run.manifest import PassRecord
from hwprof.session import foreign_spans
from hwprof.session.recorder import SpanRecorder
from hwprof.workload.runtimes.layer_spans import LayerSpan
from hwprof.workload.runtimes.runtime import Profile, RuntimeCall

THREAD = 7


def watched() -> tuple[SpanRecorder, list[tuple[int, int]]]:
    """Two iterations with a call of the model each, and when these were."""
    clock = count(1000, 1000)
    recorder = SpanRecorder(clock=lambda: next(clock))
    root = recorder.timed(recorder.path_number(""), lambda: calls.append((next(clock), next(clock))))
    calls: list[tuple[int, int]] = []
    for index in range(2):
        with recorder.iteration(index, warmup=index == 0, event_set=None), recorder.stage("inference"):
            root()
    return recorder, calls


def test_they_are_by_their_own_clock_within_the_call_and_their_parents_are_found() -> None:
    recorder, calls = watched()
    thread = recorder.table(1)["tid"][0]
    marks = [(begin + 500_000, begin - 10, begin + 10) for begin, _ in calls]
    profile = Profile(
        [
            RuntimeCall(
                begin,
                end,
                thread,
                [
                    LayerSpan("a.conv", begin + 500_100, begin + 500_300, False),
                    LayerSpan("a", begin + 499_900, begin + 900_000, False),
                ],
            )
            for begin, end in calls
        ],
        "a clock",
        marks,
        unit_ns=50,
        notes=["once", "once"],
        fused={"a.conv+act": ("a.conv", "a.act")},
    )
    record = PassRecord(name="measure")
    added = foreign_spans.add({"m.": [profile]}, recorder, record)
    assert not record.laid_out
    assert added.notes == ["once"] and added.fused == {"m.a.conv+act": ["m.a.conv", "m.a.act"]}
    assert [(one.name, one.offset_ns, one.error_ns) for one in record.clocks] == [("a clock", -500_000, 60)]
    table = recorder.table(1)
    paths = dict(table.select("span", "path").iter_rows())
    for (begin, end), index in zip(calls, (0, 1), strict=True):
        rows = {row["path"]: row for row in table.filter(pl.col("iteration") == index).iter_rows(named=True)}
        conv, outer = rows["m.a.conv"], rows["m.a"]
        assert (conv["begin_ns"], conv["end_ns"]) == (begin + 100, begin + 300)
        assert (outer["begin_ns"], outer["end_ns"]) == (begin, end)
        assert paths[conv["parent"]] == "m.a" and paths[outer["parent"]] == "" and rows[""]["path"] == ""
        assert conv["warmup"] is (index == 0) and conv["kind"] == "layer"


def test_parts_of_a_call_are_one_call() -> None:
    recorder, calls = watched()
    begin, end = calls[1]
    spans = [LayerSpan("a", begin, begin + 10, False), LayerSpan("a", begin + 20, begin + 30, True)]
    again, record = LayerSpan("a", begin + 40, begin + 50, False), PassRecord(name="x")
    foreign_spans.add({"": [Profile([RuntimeCall(begin, end, THREAD, [*spans, again])])]}, recorder, record)
    assert record.laid_out, "nobody knows when, without a clock"
    rows = recorder.table(1).filter(path="a")
    assert rows["call"].to_list() == [0, 0, 1] and recorder.added_paths() == {"a"}


@pytest.mark.parametrize("beside", [-10_000_000, 10_000_000])
def test_calls_outside_of_iterations_are_nobody_s(beside: int) -> None:
    recorder, calls = watched()
    begin, end = (at + beside for at in calls[0])
    call = RuntimeCall(begin, end, THREAD, [LayerSpan("a", begin, end, False)])
    foreign_spans.add({"": [Profile([call])]}, recorder, PassRecord(name="x"))
    assert recorder.table(1).filter(path="a").is_empty()
