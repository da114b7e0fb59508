"""Which interval lies around which: all at once as one by one."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import example, given
from hypothesis import strategies as st

from hwprof.analysis.nesting import NONE, enclosing, nested
from hwprof.analysis.timeline import Timeline

INTERVALS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=12)


WITHIN_NO_TIME = [(0, 0, 10), (0, 5, 0)]
"""One that takes no time, within another."""


def by_hand(rows: list[tuple[int, int, int]]) -> list[int]:
    """Of each row the last one before it, of its thread, that began before or with it and is still open."""
    found = []
    for number, (thread, begin, _) in enumerate(rows):
        opened: list[int] = []
        for other in range(number):
            if rows[other][0] != thread:
                opened.clear()
                continue
            while opened and rows[opened[-1]][2] <= rows[other][1]:
                opened.pop()
            opened.append(other)
        if number and rows[number - 1][0] != thread:
            opened.clear()
        while opened and rows[opened[-1]][2] <= begin:
            opened.pop()
        found.append(opened[-1] if opened else NONE)
    return found


@given(INTERVALS)
@example(WITHIN_NO_TIME)
def test_it_is_the_innermost_that_is_open(drawn: list[tuple[int, int, int]]) -> None:
    rows = sorted(((thread, begin, begin + length) for thread, begin, length in drawn), key=lambda r: (*r[:2], -r[2]))
    threads, begins, ends = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    assert enclosing(begins, ends, threads).tolist() == by_hand(rows)
    at_once = nested(begins, ends, threads)
    assert at_once is None or at_once.tolist() == by_hand(rows)


@given(INTERVALS)
@example(WITHIN_NO_TIME)
def test_a_timeline_is_the_same_either_way(drawn: list[tuple[int, int, int]]) -> None:
    spans = pl.DataFrame(
        [(begin, begin + length) for _, begin, length in drawn], schema=["begin_ns", "end_ns"], orient="row"
    )
    begins, ends = spans["begin_ns"].to_numpy(), spans["end_ns"].to_numpy()
    order = np.lexsort((-ends, begins))
    slow = Timeline._one_by_one(begins[order].tolist(), ends[order].tolist(), order)
    fast = Timeline._nested(begins[order], ends[order], order)
    times = np.arange(0, 30, dtype=np.int64)
    if fast is not None:
        found, expected = fast.at(times).tolist(), slow.at(times).tolist()
        pairs = [(begins[one], ends[one]) if one != NONE else None for one in found]
        assert pairs == [(begins[one], ends[one]) if one != NONE else None for one in expected]
