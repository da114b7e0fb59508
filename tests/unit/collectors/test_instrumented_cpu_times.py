"""What of the CPU times at edges is of code that nobody counted."""

from __future__ import annotations

import numpy as np
import pytest

from collectors.instrumented.tables import without_peaks


@pytest.mark.parametrize(
    ("uncounted", "kept"),
    [
        ([0, 4_000_000, 10, 10], [0, 10, 10, 10]),  # whoever read the clocks was preempted, once
        ([0, 50, 50, 70], [0, 50, 50, 70]),  # so much really was
        ([0, 50, 20, 20], [0, 20, 20, 20]),
        ([90, 100, 10, 10], [90, 90, 10, 10]),  # a thread is counted from now on, and all that it did before
        ([5, 4_000_000], [5, 4_000_000]),  # the last edge: nothing says that it is not so
        ([], []),
    ],
)
def test_what_is_uncounted_at_a_single_edge_is_not(uncounted: list[int], kept: list[int]) -> None:
    process = np.full(len(uncounted), 10_000_000)
    found = without_peaks(np.stack([process, np.array(uncounted, dtype=np.int64)], axis=1))
    assert found.tolist() == [[10_000_000, value] for value in kept]


def test_beside_an_edge_of_which_nothing_is_known_nothing_is_changed() -> None:
    times = np.array([[100, 0], [100, 80], [-1, -1], [100, 10], [100, 10]])
    assert without_peaks(times).tolist() == times.tolist()
