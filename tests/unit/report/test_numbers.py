"""How many digits JSON has."""

from __future__ import annotations

import json

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from hwprof.report.json.numbers import EXACT, encoded


class Row(msgspec.Struct):
    share: float
    counts: list[float | None]
    name: str


def test_figures_have_ten_digits_and_whole_numbers_all_of_theirs() -> None:
    row = Row(share=1 / 3, counts=[12718080.0, None, -0.0, 1e300, 123456789012345.0], name="1.0,0.12345678901")
    assert encoded(row) == (
        b'{"share":0.3333333333,"counts":[12718080,null,0,1e300,123456789012345],"name":"1.0,0.12345678901"}'
    )


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(1234567891.5)  # a whole number with ten digits
def test_what_is_read_again_is_written_the_same_and_is_near(value: float) -> None:
    data = encoded([value])
    (found,) = msgspec.json.decode(data, type=list[float])
    assert isinstance(found, float) and encoded([found]) == data
    assert abs(found - value) <= 5.1e-10 * abs(value) or abs(value) < 1e-300
    assert found == value or not value.is_integer() or abs(value) >= EXACT


def test_what_is_no_number_is_unknown() -> None:
    assert json.loads(encoded([float("nan"), float("inf")])) == [None, None]
