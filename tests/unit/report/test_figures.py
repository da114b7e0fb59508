from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.report.document.figures import Times
from hwprof.report.text import figures
from hwprof.report.text.figures import ASCII, UNICODE
from hwprof.report.text.grid import GAP, Column, fit


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (1234, "0.001"),
        (999_400, "0.999"),
        (999_600, "1.00"),
        (9_994_000, "9.99"),
        (9_996_000, "10.0"),
        (99_960_000, "100"),
        (1.5e9, "1,500"),
    ],
)
def test_milliseconds(ns: float, text: str) -> None:
    assert figures.milliseconds(ns) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0, "0"),
        (999, "999"),
        (999_900, "1.00 M"),
        (36_912_345, "36.9 M"),
        (1.04e11, "104 G"),
        (1500, "1.50 k"),
    ],
)
def test_amount(value: float | None, text: str) -> None:
    assert figures.amount(value, UNICODE) == text


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(0.0, 2, "0.00"), (0.004, 2, "0.004"), (1.005, 1, "1.0"), (None, 2, "–"), (1234.5, 0, "1,234"),
     (0.0246, 0, "0.02"), (3e-9, 1, "<0.0001"), (-3e-9, 2, ">-0.0001"), (-0.004, 2, "-0.004")],
)  # fmt: skip
def test_decimal(value: float | None, digits: int, text: str) -> None:
    assert figures.decimal(value, digits, UNICODE) == text


@given(st.floats(-1e6, 1e6), st.integers(0, 3))
def test_only_nothing_reads_as_nothing(value: float, digits: int) -> None:
    assert (not figures.decimal(value, digits, UNICODE).strip("-0.")) == (value == 0)


def times(repetitions: int) -> Times:
    return Times(
        repetitions=repetitions,
        median_ns=12.34e6,
        mad_ns=0.16e6 if repetitions > 1 else None,
        mean_ns=0,
        std_ns=None,
        min_ns=0,
        max_ns=0,
    )


def test_spread_has_the_medians_decimals_and_one_value_has_none() -> None:
    assert figures.time_with_spread(times(5), UNICODE) == "12.3 ±0.2"
    assert figures.time_with_spread(times(5), ASCII) == "12.3 +-0.2"
    assert figures.time_with_spread(times(1), UNICODE) == "12.3"
    assert figures.time_with_spread(None, UNICODE) == "–"


def test_a_small_spread_brings_as_many_decimals_as_it_needs() -> None:
    long = msgspec.structs.replace(times(5), median_ns=140.12e6)
    assert figures.time_with_spread(long, UNICODE) == "140.1 ±0.2"
    assert figures.time_with_spread(msgspec.structs.replace(long, mad_ns=0.9e6), UNICODE) == "140 ±1"
    assert figures.time_with_spread(msgspec.structs.replace(long, mad_ns=0.004e6), UNICODE) == "140.120 ±0.004"
    assert figures.time_with_spread(msgspec.structs.replace(long, mad_ns=0.0), UNICODE) == "140 ±0"


@pytest.mark.parametrize(
    ("ratio", "text"), [(1.013, "×1.013"), (0.98, "×0.980"), (2.494, "×2.49"), (1.5, "×1.50"), (11.13, "×11.1")]
)
def test_times_as_long(ratio: float, text: str) -> None:
    assert figures.times_as_long(ratio, UNICODE) == text
    assert figures.times_as_long(ratio, ASCII) == text.replace("×", "x")


@given(st.floats(-1, 2), st.integers(1, 20))
def test_bars_stay_in_their_width(share: float, width: int) -> None:
    assert len(figures.bar(share, width, UNICODE)) <= width
    assert len(figures.bar(share, width, ASCII)) <= width
    assert figures.bar(1.0, width, UNICODE) == "█" * width


Shares = st.lists(st.floats(0, 1), min_size=1, max_size=5).filter(lambda shares: sum(shares) > 0)


@given(Shares, st.integers(1, 80))
def test_a_stacked_bar_of_a_whole_is_full_and_each_part_within_a_character(shares: list[float], width: int) -> None:
    whole = sum(shares)
    bar = figures.stacked_bar([share / whole for share in shares], width, UNICODE)
    assert len(bar) == width
    assert bar == "".join(sorted(bar, key=UNICODE.slots.index))
    for place, share in enumerate(shares):
        assert abs(bar.count(figures.slot_glyph(place, UNICODE)) - width * share / whole) <= 1


def test_a_stacked_bar_stays_in_its_width() -> None:
    assert figures.stacked_bar([-0.1, 0.9, 0.4], 10, ASCII) == "x" * 9 + "="
    assert figures.stacked_bar([], 10, ASCII) == ""


def test_processors_are_listed_like_the_kernel_does() -> None:
    assert figures.ranges([3, 0, 1, 2, 8]) == "CPUs 0-3,8"


@given(st.text(max_size=60), st.integers(1, 40))
def test_shortening_keeps_both_ends(text: str, width: int) -> None:
    short = figures.shorten(text, width, "…")
    assert len(short) <= width
    assert (short == text) == (len(text) <= width)
    if len(text) > width > 3:
        assert text.startswith(short.partition("…")[0])
        assert short[-1] == text[-1]


ColumnSpec = st.tuples(st.integers(1, 30), st.integers(0, 5), st.one_of(st.none(), st.integers(1, 10)))


@given(st.lists(ColumnSpec, min_size=1, max_size=10), st.integers(40, 200))
def test_columns_fit_in_order_and_widest_need_goes_by_priority(
    specs: list[tuple[int, int, int | None]], width: int
) -> None:
    columns = [Column("", ["x" * size], priority, least=least) for size, priority, least in specs]
    shown = fit(columns, width)
    assert sum(column.width for column in shown) + GAP * (len(shown) - 1) <= width
    assert [column for column in columns if column in shown] == shown
    assert all(column.width >= column.needed for column in shown)


def test_readings_of_a_row_have_as_many_digits_each() -> None:
    """A clock of 3.9, 3.8 and 3.94 GHz reads as if some were known better than others."""
    shown = [figures.reading(value, UNICODE) for value in (3.9, 3.8, 3.94, 273.0, 0.0, 2200.0, 838e6)]
    assert shown == ["3.90", "3.80", "3.94", "273", "0", "2.20 k", "838 M"]
