"""Which of a large source's batches are taken."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.workload.sources.image_sample import ENOUGH_S, FEW, MOST_CALLS, MOST_S, enough, in_proportion, more_pixels


def _alike(_: object) -> int:
    return 1


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
    places = in_proportion(found, range(number, number + 1), _alike)
    assert len(places) == min(number, len(found))
    assert places == sorted(set(places))
    assert all(0 <= place < len(found) for place in places)


@given(shapes, st.integers(8, 400))
def test_every_shape_is_there_and_none_is_far_from_its_share(found: list[str], number: int) -> None:
    taken = Counter(found[place] for place in in_proportion(found, range(number, number + 1), _alike))
    frequency = Counter(found)
    assert taken.keys() == frequency.keys()
    rare = sum(count * number < len(found) for count in frequency.values())  # have more than their share
    for shape, count in frequency.items():
        share = count * min(number, len(found)) / len(found)
        assert share - 1 - rare < taken[shape] < max(share, 1) + 1


def test_where_there_are_more_shapes_than_places_the_most_frequent_are_taken() -> None:
    found = ["rare", *["often"] * 5, "once", *["twice"] * 2]
    assert [found[place] for place in in_proportion(found, range(2, 3), _alike)] == ["often", "twice"]


def test_those_of_a_shape_lie_evenly_in_the_source() -> None:
    assert in_proportion(["same"] * 100, range(4, 5), _alike) == [12, 37, 62, 87]
    assert in_proportion(["a", "b"] * 50, range(4, 9), _alike) == [24, 25, 74, 75]


def test_the_average_image_is_like_that_of_all_where_that_can_be() -> None:
    """36, 18 and 6 of 60: four of them are 2, 1 and 1, which is 4% more pixels; five, three and one are alike."""
    pixels = {"small": 100, "middle": 200, "large": 300}.__getitem__
    found = ["small"] * 36 + ["middle"] * 18 + ["large"] * 6
    places = in_proportion(found, range(4, 9), pixels)
    assert len(places) <= 8 and abs(more_pixels(found, places, pixels)) <= 0.02
    assert {found[place] for place in places} == {"small", "middle", "large"}


def test_rare_shapes_that_would_outweigh_the_others_are_left_out() -> None:
    """Of 60 images two are ten times as large: with both of them eight are 2.6 times as much work as eight of all."""
    pixels = {"usual": 1, "wide": 10, "tall": 10}.__getitem__
    found = ["usual"] * 58 + ["wide", "tall"]
    places = in_proportion(found, range(8, 17), pixels)
    more = more_pixels(found, places, pixels)
    assert 8 <= len(places) <= 16
    assert abs(more) < 0.3 and more == pytest.approx(sum(pixels(found[p]) for p in places) / len(places) / 1.3 - 1)


@given(shapes, st.integers(1, 40))
def test_however_sizes_are_places_are_in_order_and_no_more_than_twice_as_many(found: list[str], number: int) -> None:
    def pixels(shape: object) -> int:
        return 1 + 50 * (ord(str(shape)) - ord("a"))

    places = in_proportion(found, range(number, 2 * number + 1), pixels)
    again = in_proportion(found, range(len(places), len(places) + 1), pixels)
    assert places == again, "the next pass, which takes as many, takes the same"
    wanted = min(number, len(found))
    assert wanted <= len(places) <= min(2 * wanted, len(found)) and places == sorted(set(places))
