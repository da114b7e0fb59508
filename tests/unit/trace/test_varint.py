from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hwprof.trace import varint

UINT64 = (1 << 64) - 1
EDGES = sorted({(1 << bits) + step for bits in range(0, 64, 7) for step in (-1, 0, 1)} | {UINT64, 1 << 63})


def decode(data: bytes) -> int:
    """Protobuf's rule, written down a second time."""
    assert all(byte & 128 for byte in data[:-1]) and not data[-1] & 128
    return sum((byte & 127) << 7 * place for place, byte in enumerate(data))


@settings(deadline=None)
@given(st.integers(0, UINT64))
def test_one_number_reads_back_and_is_as_short_as_can_be(number: int) -> None:
    data = varint.varint(number)
    assert decode(data) == number
    assert len(data) == max(1, -(-number.bit_length() // 7))


@settings(deadline=None)
@given(st.integers(-(1 << 63), -1))
def test_negative_numbers_are_twos_complement(number: int) -> None:
    assert decode(varint.varint(number)) == number + (1 << 64)


@settings(deadline=None)
@given(st.lists(st.integers(0, UINT64) | st.sampled_from(EDGES), max_size=50))
def test_a_column_has_the_bytes_of_its_numbers(numbers: list[int]) -> None:
    column = np.array(numbers, np.uint64)
    sizes = varint.lengths(column)
    out = np.zeros((len(column), int(sizes.max(initial=1))), np.uint8)
    varint.fill(column, sizes, out)
    assert [bytes(row[:size]) for row, size in zip(out, sizes, strict=True)] == [varint.varint(n) for n in numbers]
