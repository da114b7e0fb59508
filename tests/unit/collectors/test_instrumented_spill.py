"""Arrays that lie in files are the same arrays, and where there is no room for files they stay in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.instrumented.spill import Array, Spill
from collectors.shared import nameless_file

ARRAYS: list[Array] = [
    np.arange(5, dtype=np.uint8),
    np.empty(0, np.uint32),
    np.arange(1000, dtype=np.uint16),
    np.ones(3, np.uint64),
]
KINDS = st.sampled_from(["u1", "u2", "u4", "u8"])


@given(
    st.lists(
        st.tuples(st.sampled_from(["u1", "u2", "u4", "u8"]), st.lists(st.integers(0, 255), max_size=9)), max_size=8
    )
)
def test_what_is_put_is_what_is_there(given: list[tuple[str, list[int]]]) -> None:
    arrays: list[Array] = [np.array(values, kind) for kind, values in given]
    spill = Spill(in_memory_bytes=0)
    kept = spill.put(arrays)
    spill.give_back()
    assert [(array.dtype, array.tolist()) for array in kept] == [(array.dtype, array.tolist()) for array in arrays]


def test_the_first_ones_stay_in_memory_and_leave_nothing_in_the_folder(tmp_path: Path) -> None:
    spill = Spill(tmp_path, in_memory_bytes=sum(array.nbytes for array in ARRAYS))
    first, second = spill.put(ARRAYS), spill.put(ARRAYS)
    assert all(one is other for one, other in zip(first, ARRAYS, strict=True))
    assert not any(one is other for one, other in zip(second, ARRAYS, strict=True))
    spill.give_back()
    assert [array.tolist() for array in second] == [array.tolist() for array in ARRAYS]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("why", ["no folder", "no room"])
def test_without_room_all_stays_in_memory(tmp_path: Path, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if why == "no room":
        monkeypatch.setattr(nameless_file, "RESERVE_BYTES", 1 << 62)
    spill = Spill(tmp_path if why == "no room" else tmp_path / "not there", in_memory_bytes=0)
    assert all(one is other for one, other in zip(spill.put(ARRAYS), ARRAYS, strict=True))
