"""Samples to layers, operators and stages: against a plain loop, and by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis.owners import UNATTRIBUTED
from hwprof.analysis.samples import OWNERS, attribute_samples, coverage
from hwprof.analysis.timeline import NONE, Timeline
from hwprof.run.schema import TABLES
from tests.support.small_tables import MAIN, WORKER, Example, spans

MOMENTS = st.integers(0, 30)
INTERVALS = st.lists(st.tuples(MOMENTS, MOMENTS).map(lambda pair: (min(pair), max(pair))), max_size=12)


def samples(rows: list[tuple[int, int]]) -> pl.DataFrame:
    """(time, thread); each stands for 10 ns."""
    frame = pl.DataFrame(rows, schema={"time_ns": pl.Int64, "tid": pl.Int32}, orient="row")
    return frame.with_columns(cpu_ns=pl.lit(10, dtype=pl.Int64))


def frame_of(intervals: list[tuple[int, int]]) -> pl.DataFrame:
    return pl.DataFrame(intervals, schema={"begin_ns": pl.Int64, "end_ns": pl.Int64}, orient="row")


def plainly(intervals: list[tuple[int, int]], time: int) -> tuple[int, int] | None:
    """The interval that began last of those around the moment; of several that began at once the shortest."""
    around = [pair for pair in intervals if pair[0] <= time < pair[1]]
    return max(around, key=lambda pair: (pair[0], -pair[1]), default=None)


@given(INTERVALS, st.lists(MOMENTS, max_size=30))
def test_a_timeline_agrees_with_a_plain_search(intervals: list[tuple[int, int]], times: list[int]) -> None:
    times.sort()
    found = Timeline.of(frame_of(intervals)).at(np.array(times, dtype=np.int64))
    assert [None if row == NONE else intervals[row] for row in found.tolist()] == [
        plainly(intervals, time) for time in times
    ]


@given(st.lists(st.tuples(st.integers(-50, 3500), st.sampled_from([MAIN, WORKER])), max_size=60))
def test_every_sample_has_what_ran_at_its_time(taken: list[tuple[int, int]]) -> None:
    """On whatever thread, warm-up too; nothing is dropped, and nothing else of a sample changes."""
    example = Example()
    given_rows = samples(taken)
    found = attribute_samples(given_rows, example.spans, example.layers)
    ordered = given_rows.sort("time_ns", maintain_order=True)
    assert found.select(ordered.columns).equals(ordered)
    whole = list(example.spans.select("kind", "path", "iteration", "begin_ns", "end_ns").iter_rows())
    columns = ("time_ns", "iteration", "stage", "layer", "module")
    for time, iteration, stage, layer, module in found.select(columns).iter_rows():
        around = [row for row in whole if row[3] <= time < row[4]]
        leaf = next((path for kind, path, *_ in around if kind == "layer" and path != "outer"), None)
        outer = next((path for _, path, *_ in around if path == "outer"), None)
        in_inference = any(kind == "stage" for kind, *_ in around)
        assert iteration == next((row[2] for row in around if row[0] == "iteration"), None)
        assert stage == ("inference" if in_inference else None)
        assert module == (leaf or outer)
        assert layer == (leaf or (UNATTRIBUTED if in_inference else None))
    assert coverage(found)["samples"].sum() == len(taken)


def test_the_innermost_operator_of_the_calling_thread_and_the_innermost_stage() -> None:
    rows = spans(
        [
            (0, None, 0, "iteration", "iteration 0", 0, 100),
            (1, 0, 0, "stage", "inference", 0, 60),
            (2, 0, 0, "stage", "postprocess", 60, 100),
            (3, 2, 0, "stage", "nms", 70, 80),
            (4, None, 0, "op", "aten::conv2d", 10, 40),
            (5, None, 0, "op", "aten::_convolution", 15, 35),
            (6, None, 0, "op", "aten::elsewhere", 20, 30),
        ]
    ).with_columns(tid=pl.when(pl.col("span") == 6).then(WORKER).otherwise("tid").cast(pl.Int32))
    times = [5, 12, 25, 36, 40, 65, 75, 85]
    found = attribute_samples(samples([(at, WORKER) for at in times]), rows, Example().layers)
    outer, inner = "aten::conv2d", "aten::_convolution"
    assert found["operator"].to_list() == [None, outer, inner, outer, None, None, None, None]
    assert found["stage"].to_list() == ["inference"] * 5 + ["postprocess", "nms", "postprocess"]


def test_coverage_tells_what_lies_between_layers_from_what_lies_outside() -> None:
    example = Example()
    found = attribute_samples(
        samples([(1012, MAIN), (1012, WORKER), (1040, MAIN), (1150, MAIN)]), example.spans, example.layers
    )
    assert coverage(found).rows() == [
        ("layer", 2, 20, 2 / 3),
        ("outside", 1, 10, None),
        (UNATTRIBUTED, 1, 10, 1 / 3),
    ]


def test_without_spans_nothing_is_owned() -> None:
    found = attribute_samples(samples([(5, MAIN)]), pl.DataFrame(schema=TABLES["spans"]), Example().layers)
    assert found.select(OWNERS).row(0) == (None,) * len(OWNERS)
