"""What is alike has one number, and nothing else has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collectors.instrumented.alike import Distinct, signatures

Row = Sequence[tuple[int, int]]
ROWS = st.lists(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3) | st.integers(0, 2**63)), min_size=1, max_size=4)
)


def of(rows: Sequence[Row]) -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    entries = np.array([entry for row in rows for entry in row], dtype=np.uint64).reshape(-1, 2)
    begins = np.cumsum([0, *(len(row) for row in rows)])[:-1]
    return signatures(list(entries.T), begins)


@given(ROWS, ROWS)
def test_numbers_are_those_of_what_is_alike(first: list[Row], then: list[Row]) -> None:
    distinct = Distinct()
    numbered: dict[int, list[tuple[int, int]]] = {}
    for rows in (first, then):
        before = distinct.total
        numbers, new, begin = distinct.numbers(of(rows))
        assert begin == before and distinct.total == begin + len(new)
        assert numbers[new].tolist() == list(range(begin, distinct.total))
        assert new.tolist() == sorted(new.tolist())
        for number, row in zip(numbers.tolist(), rows, strict=True):
            assert numbered.setdefault(number, sorted(row)) == sorted(row)
    assert len(numbered) == len({tuple(sorted(row)) for row in [*first, *then]}) == distinct.total


def test_half_a_signature_is_none() -> None:
    """What differs in the other half is not the same, within what is asked for and against what was."""
    distinct = Distinct()
    alike = np.array([[7, 7, 8], [1, 2, 3]], dtype=np.uint64)
    assert distinct.numbers(alike)[0].tolist() == [0, 1, 2]
    numbers, new, begin = distinct.numbers(np.array([[8, 7], [3, 9]], dtype=np.uint64))
    assert (numbers.tolist(), new.tolist(), begin) == ([2, 3], [1], 3)
