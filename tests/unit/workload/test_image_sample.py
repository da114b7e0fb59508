"""Which of a large source's batches are taken."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.workload.image_sample import ENOUGH_S, FEW, MOST_CALLS, MOST_S, enough, in_proportion

shapes = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=300)


@pytest.mark.parametrize(
    ("batches", "different", "once_s", "calls", "number"),
    [
        (3, 1, 100.0, 9, 3),  # a few are all taken, whatever they take
        (FEW, FEW, 100.0, 100_000, FEW),
        (5000, 1, 0.3, 9, FEW),  # of a slow model no fewer than that
        (5000, 1, 100.0, 9, FEW),
        (5000, 1, 0.24, 9, 4),
        (5000, 1, 0.024, 9, 32),
        (5000, 12, 0.3, 9, 12),  # each shape once
        (5000, 12, 1.0, 9, 5),  # as far as there is time
        (5000, 12, 0.01, 9, 64),
        (50, 12, 0.01, 9, 50),
        (50, 12, 1e-9, 9, 50),
        (5000, 1, 0.01, 250, 16),  # of many modules fewer
        (5000, 1, 0.01, 10_000, FEW),
        (5000, 30, 0.01, 250, 30),
        (5000, 30, 0.01, 2_000, 10),
    ],
)
def test_an_iteration_takes_about_a_second_or_some_thousand_calls(
    batches: int, different: int, once_s: float, calls: int, number: int
) -> None:
    assert enough(batches, different, once_s, calls) == number


@given(st.integers(1, 10_000), st.integers(1, 50), st.floats(1e-6, 100), st.integers(1, 100_000))
def test_it_is_bounded(batches: int, different: int, once_s: float, calls: int) -> None:
    number = enough(batches, min(different, batches), once_s, calls)
    assert 1 <= number <= batches
    assert number <= FEW or (number * once_s <= max(ENOUGH_S, MOST_S) and number * calls <= MOST_CALLS)


@given(shapes, st.integers(1, 400))
def test_places_are_each_taken_once_and_in_order(found: list[str], number: int) -> None:
    places = in_proportion(found, number)
    assert len(places) == min(number, len(found))
    assert places == sorted(set(places))
    assert all(0 <= place < len(found) for place in places)


@given(shapes, st.integers(8, 400))
def test_every_shape_is_there_and_none_is_far_from_its_share(found: list[str], number: int) -> None:
    taken = Counter(found[place] for place in in_proportion(found, number))
    frequency = Counter(found)
    assert taken.keys() == frequency.keys()
    rare = sum(count * number < len(found) for count in frequency.values())  # have more than their share
    for shape, count in frequency.items():
        share = count * min(number, len(found)) / len(found)
        assert share - 1 - rare < taken[shape] < max(share, 1) + 1


def test_where_there_are_more_shapes_than_places_the_most_frequent_are_taken() -> None:
    found = ["rare", *["often"] * 5, "once", *["twice"] * 2]
    assert [found[place] for place in in_proportion(found, 2)] == ["often", "twice"]


def test_those_of_a_shape_lie_evenly_in_the_source() -> None:
    assert in_proportion(["same"] * 100, 4) == [12, 37, 62, 87]
    assert in_proportion(["a", "b"] * 50, 4) == [24, 25, 74, 75]
