"""A pass may end when its layers' times are known well enough: as well as the report says that they are."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis import statistics
from hwprof.analysis.precision import FEWEST
from hwprof.session.precision import Precision


def reached_after(precision: Precision, *times_ns: dict[str, int], most: int = 1000) -> int:
    """How many iterations of these in turn it takes."""
    for done in range(most):
        if precision.is_reached():
            return done
        precision.add(times_ns[done % len(times_ns)])
    return most


def test_layers_that_always_take_the_same_are_known_soon() -> None:
    assert reached_after(Precision(0.001), {"a": 1_000, "b": 2_000}) == FEWEST


def test_one_that_varies_takes_longer_the_better_it_is_to_be_known() -> None:
    varies = {"a": 1_000, "b": 1_900}, {"a": 1_000, "b": 2_000}, {"a": 1_000, "b": 2_100}
    after = [reached_after(Precision(wanted), *varies) for wanted in (0.04, 0.02, 0.01)]
    assert FEWEST < after[0] < after[1] < after[2] < 1000
    assert after[2] > 3.5 * after[1], "the error falls with the root of the number, Student's factor faster"


def test_small_layers_and_those_not_always_called_are_not_waited_for() -> None:
    noisy = {"a": 1_000_000, "small": 10}, {"a": 1_000_000, "small": 4_000}, {"a": 1_000_000, "odd": 500_000}
    precision = Precision(0.01)
    assert reached_after(precision, *noisy) == FEWEST
    found = precision.look()
    assert found is not None and (found.layer, found.layers, found.iterations) == ("a", 1, FEWEST)


def test_without_layers_it_goes_on() -> None:
    precision = Precision(0.5)
    assert reached_after(precision, {}, most=50) == 50
    assert precision.look() is None


def test_a_clock_that_stands_still_tells_nothing() -> None:
    precision = Precision(0.5)
    assert reached_after(precision, {"a": 0}, most=50) == 50
    assert precision.look() is None


@given(st.lists(st.integers(900, 1_100), min_size=2, max_size=40))
def test_the_error_is_the_one_that_tables_have(times_ns: list[int]) -> None:
    precision = Precision(0.01)
    for time_ns in times_ns:
        precision.add({"a": time_ns})
    found = precision.look()
    table = pl.DataFrame({"time": times_ns}).select(
        pl.col("time").median().alias("median"), statistics.mad("time").alias("mad"), pl.len().alias("values")
    )
    (error,) = table.select(statistics.median_error("mad", "values") / pl.col("median")).to_series()
    assert found is not None and found.error == pytest.approx(error)


def test_what_four_times_as_many_would_tell_is_in_reach_of_these() -> None:
    precision = Precision(0.01)
    assert not precision.is_in_reach(100), "nobody knows"
    reached_after(precision, {"a": 1_000}, {"a": 1_020}, {"a": 980}, {"a": 1_040}, {"a": 960}, most=20)
    found = precision.look()
    assert found is not None
    times = (found.error / 0.01) ** 2
    assert precision.is_in_reach(times * 1.01) and not precision.is_in_reach(times * 0.99)


def test_disturbed_iterations_tell_nothing_once_there_are_others() -> None:
    """No median is of them."""
    precision = Precision(0.01)
    for number in range(40):
        precision.add({"a": 1_000 + 100 * (number % 2)}, disturbed=False)
        precision.add({"a": 1_050}, disturbed=True)
    found = precision.look()
    assert found is not None and found.iterations == 40 and found.error > 0.01
    assert not precision.is_reached()


def test_disturbed_iterations_count_while_there_are_too_few_others() -> None:
    precision = Precision(0.01)
    for _ in range(10):
        precision.add({"a": 1_050}, disturbed=True)
    precision.add({"a": 1_000})
    assert precision.is_reached()
    found = precision.look()
    assert found is not None and found.iterations == 11
