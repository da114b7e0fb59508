"""From looks at a thread's stack to the functions that it was in."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis.python_functions import FUNCTIONS, SCHEMA, calls, functions
from hwprof.analysis.python_stacks import Looks
from tests.support.looks import Frame, frames, of_looks
from tests.support.small_tables import record, spans


def by_looks(table: pl.DataFrame) -> pl.DataFrame:
    """With the times of the looks, which are 10 ns apart."""
    return calls(table, Looks(1e8)).with_columns(pl.col("begin_ns", "end_ns") + 10)


def told(table: pl.DataFrame) -> list[tuple[Any, ...]]:
    return table.select("depth", "function", "line", "begin_ns", "end_ns").rows()


def test_a_function_is_one_row_whatever_line_it_reaches() -> None:
    found = by_looks(frames(of_looks([[("f", 1)], [("f", 2)], [("f", 2), ("g", 7)], [("f", 3)]])))
    assert found.schema == SCHEMA
    assert told(found) == [(0, "f", 1, 0, 40), (1, "g", 7, 20, 30)]


def test_a_function_that_is_called_again_between_two_looks_is_one_and_after_one_it_is_two() -> None:
    looks: list[list[Frame]] = [[("f", 1), ("g", 7)], [("f", 2), ("g", 7)], [("f", 3)], [("f", 4), ("g", 7)]]
    assert told(by_looks(frames(of_looks(looks)))) == [(0, "f", 1, 0, 40), (1, "g", 7, 0, 20), (1, "g", 7, 30, 40)]


def test_what_another_function_calls_is_another_call() -> None:
    looks: list[list[Frame]] = [[("f", 1), ("g", 7)], [("h", 2), ("g", 7)]]
    assert told(by_looks(frames(of_looks(looks)))) == [
        (0, "f", 1, 0, 10),
        (1, "g", 7, 0, 10),
        (0, "h", 2, 10, 20),
        (1, "g", 7, 10, 20),
    ]


def test_frames_stay_where_they_are_where_one_between_is_not_known() -> None:
    rows = [(1, 0, "f", 1, 400, 500), (1, 2, "h", 1, 410, 430), (1, 2, "h", 2, 430, 450), (1, 1, "g", 1, 460, 490)]
    assert told(calls(frames(rows), Looks())) == [
        (0, "f", 1, 400, 500), (2, "h", 1, 410, 450), (1, "g", 1, 460, 490),
    ]  # fmt: skip
    assert {row[2]: row[3] for row in of_functions(rows)} == {"f": 15, "h": 20, "g": 15}


def test_threads_have_stacks_of_their_own() -> None:
    rows = of_looks([[("f", 1)]] * 2, tid=1) + of_looks([[("f", 1), ("g", 2)]], tid=2)
    assert by_looks(frames(rows))["tid"].to_list() == [1, 2, 2]
    assert by_looks(frames([])).schema == SCHEMA


STACK = st.lists(st.tuples(st.sampled_from("fgh"), st.integers(1, 3)), max_size=4)


@given(st.lists(STACK, max_size=12))
def test_at_every_look_the_functions_are_those_of_the_stack(looks: list[list[Frame]]) -> None:
    found = by_looks(frames(of_looks(looks)))
    for number, stack in enumerate(looks):
        running = found.filter(pl.col("begin_ns") <= 10 * number, pl.col("end_ns") > 10 * number).sort("depth")
        assert running["function"].to_list() == [function for function, _ in stack]
        assert running["depth"].to_list() == list(range(len(stack)))
    for before, after in zip(found.partition_by("depth"), found.partition_by("depth"), strict=True):
        assert (before["end_ns"][:-1] <= after["begin_ns"][1:]).all(), "one after the other"


@given(st.lists(STACK, max_size=12))
def test_who_calls_lasts_as_long_as_who_is_called(looks: list[list[Frame]]) -> None:
    rows = by_looks(frames(of_looks(looks))).to_dicts()
    for row in rows:
        around = [one for one in rows if one["depth"] == row["depth"] - 1]
        within = [one for one in around if one["begin_ns"] <= row["begin_ns"] and row["end_ns"] <= one["end_ns"]]
        assert row["depth"] == 0 or len(within) == 1


RECORD = record([(0, True, None, False), (1, False, None, False), (2, False, None, False)], [])
RECORD.main_tid = 1

STAGES = spans(
    [
        (0, None, 0, "stage", "inference", 0, 100),  # warm-up
        (1, None, 1, "stage", "postprocess", 200, 300),
        (2, 1, 1, "stage", "nms", 250, 290),
        (3, None, 2, "stage", "postprocess", 400, 500),
    ]
)


def of_functions(rows: list[tuple[int, int, str, int, int, int]]) -> list[tuple[Any, ...]]:
    found = functions(calls(frames(rows), Looks()), STAGES, RECORD, Looks())
    assert found.schema == FUNCTIONS
    return found.select("stage", "thread", "function", "self_ns", "inclusive_ns").rows()


def test_functions_are_cut_at_the_stages_that_they_outlast() -> None:
    rows = [(1, 0, "main", 1, 0, 600), (1, 1, "nms", 1, 240, 260), (1, 0, "after", 1, 600, 700)]
    assert of_functions(rows) == [
        ("postprocess", "main", "main", (80 + 100) / 2, (100 + 100) / 2),
        ("nms", "main", "main", 30 / 2, 40 / 2),
        ("postprocess", "main", "nms", 20 / 2, 20 / 2),
        ("nms", "main", "nms", 10 / 2, 10 / 2),
    ]


def test_a_function_that_calls_itself_is_included_once() -> None:
    rows = [(1, 0, "walk", 1, 400, 500), (1, 1, "step", 1, 410, 490), (1, 2, "walk", 1, 420, 480)]
    assert of_functions(rows) == [
        ("postprocess", "main", "walk", (20 + 60) / 2, 50),
        ("postprocess", "main", "step", 10, 40),
    ]


def test_threads_beside_the_models_are_told_apart() -> None:
    rows = [(1, 0, "f", 1, 400, 500), (2, 0, "f", 1, 400, 450), (3, 0, "f", 1, 400, 410)]
    assert of_functions(rows) == [("postprocess", "main", "f", 50, 50), ("postprocess", "other", "f", 30, 30)]


def test_self_times_of_a_thread_are_the_stage_s() -> None:
    looks: list[list[Frame]] = [[("f", 1)], [("f", 1), ("g", 1)], [("h", 1), ("g", 2), ("f", 3)], [("f", 1)]] * 20
    found = functions(calls(frames(of_looks(looks)), Looks()), STAGES, RECORD, Looks()).filter(stage="postprocess")
    assert found["self_ns"].sum() == (100 + 100) / 2
    assert found["share"].sum() == pytest.approx(1)


def test_how_many_looks_a_time_stands_for() -> None:
    found = functions(calls(frames([(1, 0, "f", 1, 410, 460)]), Looks(1e8)), STAGES, RECORD, Looks(1e8))
    assert found.select("self_ns", "looks", "inclusive_looks").rows() == [(25.0, 5.0, 5.0)]
    unknown = functions(calls(frames([(1, 0, "f", 1, 400, 450)]), Looks()), STAGES, RECORD, Looks())
    assert unknown["looks"].to_list() == unknown["inclusive_looks"].to_list() == [None]


def test_where_nobody_looked_there_are_no_functions() -> None:
    assert of_functions([]) == of_functions([(1, 0, "f", 1, 0, 100)]) == []


def test_the_interval_of_a_share_holds_as_often_as_it_says() -> None:
    """Of a function that takes 30% of a stage, by looks at random times, as py-spy's: 95% of 400, less 3 of its own
    standard errors (1.1%)."""
    of_stage, mean_ns, share = 100_000, 1_000, 0.3
    stages = spans([(1, None, 1, "stage", "inference", 0, of_stage)])
    pass_record = record([(1, False, None, False)], [])
    pass_record.main_tid = 1
    chance, held = random.Random(0), 0
    for _ in range(400):
        times = [0]
        while times[-1] < of_stage:
            times.append(times[-1] + max(1, round(chance.expovariate(1 / mean_ns))))
        names = ["f" if at % 100 < 100 * share else "g" for at in times]
        rows = [(1, 0, name, 1, *pair) for name, pair in zip(names, pairwise(times), strict=False)]
        looks = Looks(1e9 / mean_ns)
        found = functions(calls(frames(rows), looks._replace(rate_hz=None)), stages, pass_record, looks)
        row = found.filter(function="f").row(0, named=True)
        held += row["share_low"] <= share <= row["share_high"]
    assert held / 400 >= 0.95 - 3 * 0.011
