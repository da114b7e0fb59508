"""Rows by span are those of the frame, however few are objects at a time."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.trace import by_span
from hwprof.trace.by_span import BySpan, none_by_span


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 99)), max_size=40), st.lists(st.integers(-1, 7)))
def test_they_are_those_of_the_frame_in_its_order(rows: list[tuple[int, int]], asked: list[int]) -> None:
    frame = pl.DataFrame(rows, schema={"span": pl.Int64, "value": pl.Int64}, orient="row")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_span, "ROWS", 3)
        found = BySpan(frame, lambda row: row[0])
        for span in asked:
            assert found.of(span) == [value for other, value in rows if other == span]
            assert (span in found) == any(other == span for other, _ in rows)


def test_none_has_none() -> None:
    assert none_by_span().of(3) == [] and 3 not in none_by_span()
