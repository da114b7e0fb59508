"""What calls what: by names, over all calls."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis.operator_tree import SCHEMA, operator_tree
from hwprof.run.schema import TABLES
from tests.support.small_tables import MAIN, layers, spans

LAYERS = layers([("", "Net", False), ("a", "Conv2d", True), ("b", "Conv2d", True)])
CALLS = [
    (1, None, 0, "layer", "", 0, 100),
    (2, 1, 0, "layer", "a", 10, 40),
    (3, None, 0, "op", "aten::conv2d", 12, 38),
    (4, None, 0, "op", "aten::mkldnn", 15, 35),
    (5, 1, 0, "layer", "b", 50, 80),
    (6, None, 0, "op", "aten::conv2d", 50, 80),
    (7, None, 0, "op", "aten::add", 85, 95),
    (8, None, 1, "layer", "", 100, 150),
]


def told(rows: list[Any], allocated: list[tuple[int, int]] | None = None, iterations: int = 2) -> list[dict[str, Any]]:
    place = {"pass": "trace", "pid": MAIN, "tid": MAIN, "address": 1}
    events = pl.DataFrame(
        [{**place, "time_ns": at, "bytes": size} for at, size in allocated or []], schema=TABLES["allocations"]
    )
    table = spans(rows).with_columns(input_shapes=pl.when(pl.col("kind") == "op").then(pl.lit("1x3")))
    found = operator_tree(table, LAYERS, events, tuple(range(iterations)), MAIN)
    assert found.schema == SCHEMA
    return found.to_dicts()


def test_calls_with_the_same_names_above_them_are_one_node() -> None:
    rows = told(CALLS, [(20, 1000), (60, 500), (61, -500), (99, 7)])
    assert [(row["depth"], row["name"], row["parent"]) for row in rows] == [
        (0, "Net", None),
        (1, "Conv2d", 0),
        (2, "aten::conv2d", 1),
        (3, "aten::mkldnn", 2),
        (1, "aten::add", 0),
    ]
    net, conv, conv2d, mkldnn, _ = rows
    assert (net["calls"], net["time_ns"], net["self_ns"]) == (1, 75, (100 - 30 - 30 - 10 + 50) / 2)
    assert (conv["calls"], conv["time_ns"], conv["self_ns"]) == (1, 30, 2)
    assert (conv2d["time_ns"], conv2d["self_ns"], conv2d["self_allocated_bytes"]) == (28, 18, 250)
    assert (mkldnn["allocated_bytes"], conv2d["allocated_bytes"], conv["allocated_bytes"]) == (500, 750, 750)
    assert (net["allocated_bytes"], net["self_allocated_bytes"]) == (753.5, 3.5)
    assert (conv2d["kind"], conv2d["shapes"], conv2d["usual_shapes"]) == ("operator", 1, "1x3")
    assert net["share"] == 1 and conv["share"] == pytest.approx(60 / 150)


def test_where_nobody_watched_memory_it_is_not_known() -> None:
    assert {row[name] for row in told(CALLS) for name in ("allocated_bytes", "self_allocated_bytes")} == {None}
    assert told([]) == []


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(1, 60), st.sampled_from("abc")), max_size=15))
def test_own_times_add_up_to_what_is_at_the_top(asked: list[tuple[int, int, str]]) -> None:
    """Of intervals that lie within one another, or apart."""
    kept: list[tuple[int, int, str]] = []
    for begin, length, name in sorted(asked, key=lambda one: (one[0], -one[1])):
        around = [one for one in kept if one[0] <= begin < one[1]]
        end = min([begin + length, *(one[1] for one in around)])
        kept.append((begin, end, name))
    rows = told([(n, None, 0, "op", name, begin, end) for n, (begin, end, name) in enumerate(kept)], iterations=1)
    top = sum(row["time_ns"] for row in rows if row["parent"] is None)
    assert sum(row["self_ns"] for row in rows) == top
    assert all(row["parent"] is None or row["parent"] < row["node"] for row in rows)
