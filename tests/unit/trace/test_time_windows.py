from __future__ import annotations

from itertools import pairwise

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from hwprof.trace.time_windows import windows

times = st.lists(st.integers(0, 2_000), max_size=60)
intervals = st.lists(st.tuples(st.integers(0, 2_000), st.integers(0, 300)), max_size=8)


def frame(values: list[int]) -> pl.LazyFrame:
    return pl.LazyFrame({"begin_ns": values}, schema={"begin_ns": pl.Int64})


@settings(deadline=None)
@given(times, intervals, st.integers(1, 20))
def test_windows_hold_every_row_once_and_cut_nothing_whole(
    values: list[int], layers: list[tuple[int, int]], rows: int
) -> None:
    whole = pl.LazyFrame(
        {"begin_ns": [begin for begin, _ in layers], "end_ns": [begin + length for begin, length in layers]},
        schema={"begin_ns": pl.Int64, "end_ns": pl.Int64},
    )
    found = windows(frame(values), "begin_ns", rows=rows, unsplit=whole)
    assert all(until == since for (_, until), (since, _) in pairwise(found))
    assert all(sum(since <= value < until for since, until in found) == 1 for value in values)
    cuts = [since for since, _ in found[1:]]
    assert not any(begin < cut < begin + length for cut in cuts for begin, length in layers)


def test_a_window_holds_about_so_many_rows() -> None:
    found = windows(frame(list(range(0, 1_000_000, 10))), "begin_ns", rows=10_000)
    assert len(found) == 10
    assert all(90_000 <= until - since <= 110_000 for since, until in found)


def test_a_cut_within_an_interval_moves_to_its_begin_and_one_beside_stays() -> None:
    """Rows at every nanosecond: cuts would be at each hundred."""
    layers = [(50, 100), (150, 200), (200, 220), (290, 310), (310, 405), (500, 550)]
    whole = pl.LazyFrame(layers, schema=["begin_ns", "end_ns"], orient="row")
    found = windows(frame(list(range(700))), "begin_ns", rows=100, unsplit=whole)
    assert [since for since, _ in found] == [0, 100, 200, 290, 310, 500, 600]
    assert found[-1][1] == 700


def test_a_small_table_is_one_window_and_an_empty_one_none() -> None:
    assert windows(frame([5, 3, 9]), "begin_ns") == [(3, 10)]
    assert windows(frame([]), "begin_ns") == []
