"""The operators that layers call, and modules in their own code: whose time is whose, and nothing twice."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis.attribution import attribute
from hwprof.analysis.layer_operators import SCHEMA, layer_operators
from hwprof.analysis.owners import ROOT, UNATTRIBUTED, WHOLE, own
from tests.support.small_tables import MAIN, WORKER, counts, layers, record, spans

MODULES = layers([(ROOT, "Net", False), ("block", "Block", False), ("block.conv", "Conv2d", True)])

Row = tuple[int, int | None, int, str, str, int, int]

ITERATION: list[Row] = [
    (0, None, 0, "stage", "inference", 0, 400),
    (1, 0, 0, "layer", ROOT, 10, 300),
    (2, None, 0, "op", "cat", 20, 50),
    (3, None, 0, "op", "copy_", 30, 45),  # called by cat
    (4, 1, 0, "layer", "block", 60, 200),
    (5, None, 0, "op", "compiled", 70, 190),  # calls a module
    (6, 4, 0, "layer", "block.conv", 80, 150),
    (7, None, 0, "op", "conv2d", 85, 145),
    (8, None, 0, "op", "add", 210, 290),
    (9, None, 0, "op", "topk", 310, 320),  # after the model
]


def test_an_operator_belongs_to_the_module_that_calls_it() -> None:
    found = layer_operators(spans(ITERATION), MODULES, (0,))
    assert {row[:2]: row[2:] for row in found.rows()} == {
        (own(ROOT), "add"): (1, 80, 80 / 150),
        (own(ROOT), None): (None, 40, 40 / 150),
        (own(ROOT), "cat"): (1, 30, 30 / 150),
        (own("block"), "compiled"): (1, 50, 50 / 70),
        (own("block"), None): (None, 20, 20 / 70),
        ("block.conv", "conv2d"): (1, 60, 60 / 70),
        ("block.conv", None): (None, 10, 10 / 70),
    }
    assert found["time_ns"].is_sorted(descending=True)


def test_times_and_calls_are_of_one_iteration() -> None:
    second: list[Row] = [
        (span + 10, parent, 1, kind, path, begin + 1000, end + 1000)
        for span, parent, _, kind, path, begin, end in ITERATION
        if path != "add"
    ]
    found = layer_operators(spans([*ITERATION, *second]), MODULES, (0, 1)).filter(layer=own(ROOT), operator="add")
    assert found.select("calls", "time_ns").rows() == [(0.5, 40.0)]
    assert layer_operators(spans([*ITERATION, *second]), MODULES, (1,)).filter(operator="add").is_empty()


def test_operators_of_threads_without_a_module_are_nobodys() -> None:
    rows = spans([ITERATION[1], ITERATION[8]]).with_columns(tid=pl.Series([MAIN, WORKER], dtype=pl.Int32))
    assert layer_operators(rows, MODULES, (0,)).select("layer", "operator").rows() == [(own(ROOT), None)]


@pytest.mark.parametrize("rows", [[], ITERATION[:1], ITERATION[9:]])
def test_without_modules_there_is_nothing(rows: list[Row]) -> None:
    found = layer_operators(spans(rows), MODULES, (0,))
    assert found.is_empty() and found.schema == SCHEMA


PATHS = ("block", "block.conv", "add", "cat")
CALLS: st.SearchStrategy[list[object]] = st.deferred(
    lambda: st.lists(st.one_of(st.integers(1, 9), st.tuples(st.sampled_from(PATHS), CALLS)), max_size=4)
)


@given(CALLS)
def test_what_a_layer_calls_and_what_is_between_is_all_of_its_time(steps: list[object]) -> None:
    """However modules and operators call one another, even themselves."""
    rows: list[Row] = []

    def call(kind: str, path: str, begin: int, inside: list[object]) -> int:
        number, now = len(rows), begin + 1
        rows.append((number, None, 0, kind, path, begin, now))
        for step in inside:
            if isinstance(step, int):
                now += step
            else:
                assert isinstance(step, tuple)
                now = call("layer" if step[0].startswith("block") else "op", step[0], now, step[1])
        rows[number] = (number, None, 0, kind, path, begin, now + 1)
        return now + 1

    end = call("layer", ROOT, 1, steps)
    rows.append((len(rows), None, 0, "stage", "inference", 0, end + 1))
    inner = MODULES.with_columns(leaf=pl.lit(value=False))  # of a leaf the layers in it are a part
    found = layer_operators(spans(rows), inner, (0,))
    expected = attribute(spans(rows), counts([]), inner, record([(0, False, 0, False)], [])).times
    assert dict(found.group_by("layer").agg(pl.col("time_ns").sum()).iter_rows()) == pytest.approx(
        dict(expected.filter(~pl.col("owner").is_in([WHOLE, UNATTRIBUTED])).select("owner", "time_ns").iter_rows())
    )
    assert set(found.group_by("layer").agg(pl.col("share").sum().round(9))["share"]) == {1.0}
