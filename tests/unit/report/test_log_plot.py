"""Plots of characters on logarithmic axes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from hwprof.report.text.figures import ASCII, UNICODE, Glyphs
from hwprof.report.text.log_plot import LABEL, Axis, LogPlot

DECADES = Axis(0.1, 1000.0)


def plot(glyphs: Glyphs = ASCII, columns: int = 40, rows: int = 8) -> LogPlot:
    return LogPlot(columns, rows, DECADES, DECADES, glyphs)


def drawn(of: LogPlot) -> list[str]:
    """The rows, without the vertical axis."""
    return [line[LABEL:] for line in of.text("x", "y").plain.splitlines()[1 : of.rows + 1]]


def test_decades_are_at_even_distances() -> None:
    assert DECADES.decades() == [0.1, 1.0, 10.0, 100.0, 1000.0]
    assert [DECADES.place(value, 40) for value in DECADES.decades()] == pytest.approx([0, 10, 20, 30, 40])
    assert Axis(0.11, 999.0).decades() == [1.0, 10.0, 100.0]


@given(st.floats(0.1, 1000.0), st.floats(0.1, 1000.0))
def test_a_mark_stands_where_its_values_are(x: float, y: float) -> None:
    found = plot()
    assert found.mark(x, y, "#")
    (row,) = [number for number, line in enumerate(drawn(found)) if "#" in line]
    column = drawn(found)[row].index("#")
    at_x, at_y = DECADES.place(x, 40), DECADES.place(y, 8)
    assert column <= at_x + 1e-6 and at_x - 1e-6 <= column + 1
    assert 7 - row <= at_y + 1e-6 and at_y - 1e-6 <= 8 - row


def test_marks_of_one_place_stand_side_by_side_and_what_is_outside_nowhere() -> None:
    found = plot()
    assert [found.mark(12.0, 12.0, letter) for letter in "abcdef"] == [True] * 5 + [False]
    assert any("ecabd" in line for line in drawn(found))
    assert not found.mark(12.0, 12.0, "o", move=False) and not found.mark(0.01, 1.0, "g")


@pytest.mark.parametrize("glyphs", [ASCII, UNICODE])
def test_a_slope_of_one_rises_a_decade_a_decade(glyphs: Glyphs) -> None:
    """Of 40 columns and 8 rows: a row every five columns, and every column has a part of the line."""
    found = plot(glyphs)
    found.line((0.1, 0.1), (1000.0, 1000.0))
    rows = drawn(found)
    for number, line in enumerate(rows):
        begin = 5 * (7 - number)
        assert line.strip() == line[begin : begin + 5] and len(line.strip()) == 5, rows


def test_a_line_leaves_the_plot_and_marks_and_labels_stand_above_it() -> None:
    found = plot()
    found.line((0.01, 10.0), (1e6, 10.0))
    assert found.mark(1.0, 10.1, "1") and found.label("L2", 20, found.rows // 2 - 1)
    line = drawn(found)[3]
    assert len(line) == 40 and line[10] == "1" and line[20:22] == "L2" and set(line) == {".", "1", "L", "2"}
    assert not found.label("L3", 22, 3), "no room between the two"
    assert not found.label("too long", 36, 2) and not found.label("above", 1, -1)


@pytest.mark.parametrize("glyphs", [ASCII, UNICODE])
def test_the_axes_have_their_decades(glyphs: Glyphs) -> None:
    found = plot(glyphs)
    lines = found.text("FLOP/byte", "GFLOP/s").plain.splitlines()
    assert lines[0].strip() == "GFLOP/s" and lines[-1].strip() == "FLOP/byte" and len(lines) == 8 + 4
    numbers = [line[: LABEL - 1].strip() for line in lines[1:9]]
    assert [number for number in numbers if number] == ["1000", "100", "10", "1", "0.1"]
    assert lines[-2].split() == ["0.1", "1", "10", "100", "1000"]
    assert max(cell_len(line) for line in lines) == LABEL + 40
    assert glyphs is UNICODE or all(line.isascii() for line in lines)
