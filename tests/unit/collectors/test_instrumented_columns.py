"""Columns of few amounts take few bytes, and have the same amounts in every row."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collectors.instrumented.columns import Column, Part, packed

AMOUNTS = st.one_of(st.just(0), st.just(0), st.just(0), st.integers(0, 1 << 62))


@given(st.lists(st.lists(AMOUNTS, max_size=30), max_size=5), st.sets(st.integers(0, 150)))
def test_rows_are_those_of_the_parts(parts: list[list[int]], some: set[int]) -> None:
    column = Column([packed(np.array(part, np.int64)) for part in parts])
    rows = [amount for part in parts for amount in part]
    wanted = sorted(row for row in some if row < len(rows))
    assert column.rows == len(rows)
    assert column.at(np.array(wanted, np.int64)).tolist() == [rows[row] for row in wanted]


def test_what_is_mostly_nothing_takes_next_to_nothing() -> None:
    amounts = np.zeros(1_000_000, np.int64)
    assert _bytes(packed(amounts)) == 0
    amounts[::1000] = 70_000
    assert _bytes(packed(amounts)) == 1000 * 8
    dense = packed(amounts + 1)
    assert dense.places is None and _bytes(dense) == 4_000_000


def _bytes(part: Part) -> int:
    return part.values.nbytes + (part.places.nbytes if part.places is not None else 0)
