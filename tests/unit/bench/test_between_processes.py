"""Intervals by the spread of a case's processes."""

from __future__ import annotations

import numpy as np
import pytest

from hwprof.bench.between_processes import error_of_mean, error_of_ratio


def test_a_mean_has_student_s_interval() -> None:
    assert error_of_mean([1.0, 2.0, 3.0]) == pytest.approx(4.303 / 3**0.5)
    assert error_of_mean([2.0, 2.0]) == 0
    assert error_of_mean([1.0]) is None and error_of_mean([]) is None


def test_a_ratio_of_one_process_has_none() -> None:
    assert error_of_ratio([1.0], [1.0, 2.0]) is None and error_of_ratio([1.0, 1.0], []) is None
    assert error_of_ratio([1.0, 0.0], [1.0, 2.0]) is None
    assert error_of_ratio([3.0, 3.0], [2.0, 2.0]) == 0


@pytest.mark.parametrize(
    ("over", "under", "spread", "most"), [(3, 3, 1.0, 0.99), (10, 10, 1.0, 0.97), (3, 10, 3.0, 0.97), (2, 2, 1.0, 1.0)]
)
def test_the_interval_holds_the_truth_as_often_as_it_says(over: int, under: int, spread: float, most: float) -> None:
    """Of processes that lie 3% apart, and a case that is not faster at all; of two processes it is as wide as for one
    degree of freedom."""
    generator = np.random.default_rng(5)
    held = []
    for _ in range(2000):
        first, second = generator.normal(1, 0.03, over), generator.normal(1, 0.03 * spread, under)
        error = error_of_ratio([*first], [*second])
        assert error is not None
        held.append(abs(first.mean() / second.mean() - 1) <= error)
    assert 0.94 <= np.mean(held) <= most
