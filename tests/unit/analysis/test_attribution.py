from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from hwprof.analysis.attribution import COUNTS_SCHEMA, TIMES_SCHEMA, attribute, overlaps
from hwprof.analysis.iterations import select
from hwprof.analysis.owners import UNATTRIBUTED, WHOLE
from hwprof.run.manifest import IterationRecord
from hwprof.run.process_events import WHOLE_PROCESS_TID
from tests.support.small_tables import MAIN, WORKER, Example, counts, layers, record, spans


def test_times_of_every_iteration_after_warm_up_add_up_to_the_inference() -> None:
    example = Example()
    found = attribute(example.spans, example.counts, example.layers, example.record)
    expected = pl.DataFrame(
        [
            ("a", 1, False, 2, 11 + 20),
            ("a", 2, True, 2, 12 + 20),
            ("a", 3, True, 2, 13 + 20),
            ("b", 1, False, 1, 30),
            ("b", 2, True, 1, 30),
            ("b", 3, True, 1, 30),
            (UNATTRIBUTED, 1, False, 1, 101 - 61),
            (UNATTRIBUTED, 2, True, 1, 102 - 62),
            (UNATTRIBUTED, 3, True, 1, 103 - 63),
            (WHOLE, 1, False, 1, 101),
            (WHOLE, 2, True, 1, 102),
            (WHOLE, 3, True, 1, 103),
        ],
        schema=TIMES_SCHEMA,
        orient="row",
    )
    assert_frame_equal(found.times, expected)
    assert found.iterations.timed == (1,)
    assert found.iterations.counted == (2, 3)
    assert found.whole == "inference"
    assert found.overlapping_calls == 0


def test_counts_come_from_counting_iterations_whose_set_holds_the_event() -> None:
    example = Example()
    found = attribute(example.spans, example.counts, example.layers, example.record)
    rows = []
    for event, index in (("cycles", 2), ("instructions", 3)):
        rows += [
            ("a", index, event, 300 + 2 * index, 30, 400),
            ("b", index, event, 30 + index, 3, 200),
            (UNATTRIBUTED, index, event, 500 - 330 - 2 * index, 50 - 33, -400),
            (WHOLE, index, event, 500 + index, 50, 200),
        ]
    expected = pl.DataFrame(
        [
            (owner, index, event, "measured", main + workers, main, workers, *3 * (0.0,), enabled, enabled)
            for owner, index, event, main, workers, enabled in rows
        ],
        schema=COUNTS_SCHEMA,
        orient="row",
    ).with_columns(
        scaled=pl.col("value").cast(pl.Float64),
        scaled_main=pl.col("main").cast(pl.Float64),
        scaled_workers=pl.col("workers").cast(pl.Float64),
    )
    assert_frame_equal(found.counts, expected.sort("owner", "iteration", "event"))


def test_without_timing_iterations_times_come_from_the_counting_ones() -> None:
    iterations = select([IterationRecord(0, True, 0, False), IterationRecord(1, False, 0, True)])
    assert iterations.timed == iterations.counted == (1,)


def test_a_multiplexed_counter_is_scaled_by_thread_and_the_raw_value_kept() -> None:
    found = attribute(
        spans([(0, None, 0, "stage", "inference", 0, 100), (1, 0, 0, "layer", "a", 10, 60)]),
        counts(
            [
                (0, 0, MAIN, "cycles", 1000, 100, 50),
                (0, 0, WORKER, "cycles", 300, 100, 100),
                (0, 1, MAIN, "cycles", 400, 50, 25),
                (0, 1, WORKER, "cycles", 120, 40, 40),
            ]
        ),
        layers([("a", "Conv2d", True)]),
        record([(0, False, 0, True)], [["cycles"]]),
    )
    row = found.counts.row(by_predicate=pl.col("owner") == "a", named=True)
    assert (row["value"], row["enabled_ns"], row["running_ns"]) == (520, 90, 65)
    assert (row["scaled"], row["scaled_main"], row["scaled_workers"]) == (920.0, 800.0, 120.0)
    rest = found.counts.row(by_predicate=pl.col("owner") == UNATTRIBUTED, named=True)
    assert (rest["value"], rest["scaled"]) == (1300 - 520, 2300.0 - 920.0)


def test_a_counter_that_never_ran_is_unknown_and_a_sleeping_thread_is_zero() -> None:
    found = attribute(
        spans([(0, None, 0, "stage", "inference", 0, 100), (1, 0, 0, "layer", "a", 10, 60)]),
        counts(
            [
                (0, 1, MAIN, "cycles", 0, 50, 0),
                (0, 1, WORKER, "cycles", 0, 0, 0),
                (0, 1, MAIN, "instructions", 7, 50, 50),
                (0, 1, WORKER, "instructions", 0, 0, 0),
            ]
        ),
        layers([("a", "Conv2d", True)]),
        record([(0, False, 0, True)], [["cycles", "instructions"]]),
    )
    scaled = dict(found.counts.select("event", "scaled").iter_rows())
    assert scaled == {"cycles": None, "instructions": 7.0}


def test_what_is_not_known_of_one_leaf_is_not_known_of_the_rest() -> None:
    """The leaf `a` was never counted, `b` all the time; another event was counted in no leaf at all."""
    found = attribute(
        spans(
            [
                (0, None, 0, "stage", "inference", 0, 100),
                (1, 0, 0, "layer", "a", 10, 20),
                (2, 0, 0, "layer", "b", 20, 60),
            ]
        ),
        counts(
            [
                (0, 0, MAIN, "cycles", 100, 100, 50),
                (0, 1, MAIN, "cycles", 0, 10, 0),
                (0, 2, MAIN, "cycles", 30, 40, 40),
                (0, 0, MAIN, "faults", 7, 100, 100),
            ]
        ),
        layers([("a", "Conv2d", True), ("b", "Conv2d", True)]),
        record([(0, False, 0, True)], [["cycles", "faults"]]),
    )
    rest = found.counts.filter(pl.col("owner") == UNATTRIBUTED)
    assert rest.select("event", "value", "scaled").rows() == [("cycles", 70, None), ("faults", 7, 7.0)]


def test_values_of_the_process_belong_to_no_thread() -> None:
    found = attribute(
        spans([(0, None, 0, "stage", "inference", 0, 100)]),
        counts([(0, 0, WHOLE_PROCESS_TID, "context-switches", 5)]),
        layers([]),
        record([(0, False, 0, True)], [["cycles"]]),
    )
    assert found.counts.select("owner", "value", "main", "workers").rows() == [
        (UNATTRIBUTED, 5, None, None),
        (WHOLE, 5, None, None),
    ]


def test_layers_outside_of_the_inference_do_not_count_against_it() -> None:
    found = attribute(
        spans(
            [
                (0, None, 0, "layer", "a", 0, 40),
                (1, None, 0, "stage", "inference", 50, 100),
                (2, 1, 0, "layer", "a", 60, 70),
            ]
        ),
        counts([(0, 0, MAIN, "cycles", 40), (0, 1, MAIN, "cycles", 50), (0, 2, MAIN, "cycles", 10)]),
        layers([("a", "Conv2d", True)]),
        record([(0, False, 0, True)], [["cycles"]]),
    )
    assert found.counts.select("owner", "value").rows() == [("a", 50), (UNATTRIBUTED, 40), (WHOLE, 50)]
    assert found.times.select("owner", "time_ns").rows() == [("a", 50), (UNATTRIBUTED, 40), (WHOLE, 50)]


def test_without_an_inference_stage_the_iteration_is_the_whole() -> None:
    found = attribute(
        spans([(0, None, 0, "iteration", "iteration 0", 0, 100), (1, 0, 0, "layer", "a", 10, 60)]),
        counts([]),
        layers([("a", "Conv2d", True)]),
        record([(0, False, None, False)], []),
    )
    assert found.whole == "iteration"
    assert found.times.select("owner", "time_ns").rows() == [("a", 50), (UNATTRIBUTED, 50), (WHOLE, 100)]


def test_overlapping_leaves_are_noticed() -> None:
    found = attribute(
        spans(
            [(0, None, 0, "layer", "a", 0, 50), (1, None, 0, "layer", "b", 40, 90), (2, None, 0, "layer", "a", 90, 95)]
        ),
        counts([]),
        layers([("a", "Conv2d", True), ("b", "Conv2d", True)]),
        record([(0, False, None, False)], []),
    )
    assert found.overlapping_calls == 1


def test_every_leaf_within_a_longer_one_overlaps() -> None:
    around = [(0, None, 0, "layer", "a", 0, 50), (1, None, 0, "layer", "b", 10, 20), (2, None, 0, "layer", "b", 30, 40)]
    assert overlaps(spans(around)) == 2


Value = st.integers(0, 2**50)
Calls = st.lists(
    st.tuples(st.sampled_from("abc"), st.lists(Value, min_size=2, max_size=2), st.integers(0, 10**9)), max_size=12
)


@given(st.lists(Calls, min_size=1, max_size=4), st.lists(Value, min_size=2, max_size=2))
def test_leaves_and_the_rest_are_the_whole_for_any_counts(
    iterations: list[list[tuple[str, list[int], int]]], own: list[int]
) -> None:
    """To the last count and nanosecond, in total, on the main thread and on the workers, in every iteration."""
    span_rows: list[tuple[int, int | None, int, str, str, int, int]] = []
    count_rows: list[tuple[int, int, int, str, int]] = []
    now, wholes = 0, {}
    for index, calls in enumerate(iterations):
        stage, begin = len(span_rows), now
        span_rows.append((stage, None, index, "stage", "inference", begin, begin))
        sums = list(own)
        for path, values, duration in calls:
            span_rows.append((len(span_rows), stage, index, "layer", path, now + 1, now + 1 + duration))
            now += duration + 2
            for place, tid in enumerate((MAIN, WORKER)):
                count_rows.append((index, len(span_rows) - 1, tid, "cycles", values[place]))
                sums[place] += values[place]
        now += 5
        span_rows[stage] = (stage, None, index, "stage", "inference", begin, now)
        count_rows += [(index, stage, tid, "cycles", sums[place]) for place, tid in enumerate((MAIN, WORKER))]
        wholes[index] = (sum(sums), *sums, now - begin)
    found = attribute(
        spans(span_rows),
        counts(count_rows),
        layers([(path, "Conv2d", True) for path in "abc"]),
        record([(index, False, 0, True) for index in range(len(iterations))], [["cycles"]]),
    )
    parts = (
        found.counts.filter(pl.col("owner") != WHOLE)
        .group_by("iteration")
        .agg(pl.col("value", "main", "workers").sum())
    )
    times = found.times.filter(pl.col("owner") != WHOLE).group_by("iteration").agg(pl.col("time_ns").sum())
    summed = {row[0]: row[1:] for row in parts.join(times, on="iteration").iter_rows()}
    assert summed == wholes
    rest = found.counts.filter(pl.col("owner") == UNATTRIBUTED)
    assert rest.select("main", "workers").unique().rows() == [tuple(own)]


@pytest.mark.parametrize("missing", ["spans", "counts", "layers"])
def test_an_empty_table_is_no_failure(missing: str) -> None:
    example = Example()
    tables = {"spans": example.spans, "counts": example.counts, "layers": example.layers}
    tables[missing] = tables[missing].clear()
    found = attribute(tables["spans"], tables["counts"], tables["layers"], example.record)
    assert found.times.schema == TIMES_SCHEMA
    assert found.counts.schema == COUNTS_SCHEMA
