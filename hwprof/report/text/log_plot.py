"""A plot with two logarithmic axes, of characters: lines, labels and marks.

plotext was tried first. Its release 6 puts every point of a logarithmic axis into one cell; release 5 draws them, but
its interface is gone in 6, its axes have no ASCII form, and it neither keeps labels and marks apart nor says which of
two marks in one cell is seen. Lines take eight dots a cell where the terminal has them (braille), three heights of a
character where it has not.
"""

from __future__ import annotations

import math
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

from rich.text import Text

from hwprof.report.text.console import Lines
from hwprof.report.text.figures import ASCII, Glyphs

BRAILLE: Final = 0x2800
DOTS: Final = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Of a braille character, by column and row."""

HEIGHTS: Final = "'-."
"""Of an ASCII character: how high it stands in its cell, the highest first."""

LABEL: Final = 7
"""Characters of a number beside the vertical axis, with its tick."""

ASIDE: Final = (0, 1, -1, 2, -2)
"""Cells by which a mark may be moved where another one is: less than what is known of its place."""

TINY: Final = 1e-9


class Axis(NamedTuple):
    """From the lowest to the highest value, both above 0."""

    low: float
    high: float

    def place(self, value: float, cells: int) -> float:
        """In 0 … cells, from the low end."""
        return cells * math.log(value / self.low) / math.log(self.high / self.low)

    def value(self, place: float, cells: int) -> float:
        """What lies there."""
        return float(self.low * (self.high / self.low) ** (place / cells))

    def decades(self) -> list[float]:
        """The powers of ten on it."""
        first, last = math.ceil(math.log10(self.low) - TINY), math.floor(math.log10(self.high) + TINY)
        return [10.0**power for power in range(first, last + 1)]


class LogPlot:
    """Of so many ``columns`` and ``rows`` without its axes. What is drawn later stands above what is there, but for
    lines, which stand below all."""

    def __init__(self, columns: int, rows: int, x: Axis, y: Axis, glyphs: Glyphs) -> None:
        self.columns, self.rows, self.x, self.y = columns, rows, x, y
        self._ascii = glyphs == ASCII
        self._dots: dict[tuple[int, int], tuple[int, str]] = {}
        self._cells: dict[tuple[int, int], tuple[str, str]] = {}

    def cell(self, x: float, y: float) -> tuple[int, int] | None:
        """Column from the left and row from the top; None: outside."""
        column, row = self.x.place(x, self.columns), self.rows - self.y.place(y, self.rows)
        if not (-TINY <= column <= self.columns + TINY and -TINY <= row <= self.rows + TINY):
            return None
        return min(max(int(column), 0), self.columns - 1), min(max(int(row), 0), self.rows - 1)

    def line(self, begin: tuple[float, float], end: tuple[float, float], style: str = "", *, every: int = 1) -> None:
        """Straight on these axes, from left to right; ``every`` second, third … point of it, else all."""
        across, up = (1, len(HEIGHTS)) if self._ascii else (2, 4)
        columns, rows = self.columns * across, self.rows * up
        first, last = (self.x.place(x, columns) for x in (begin[0], end[0]))
        low, high = (self.y.place(y, rows) for y in (begin[1], end[1]))
        for dot in range(max(math.ceil(first - 0.5), 0), min(math.floor(last - 0.5), columns - 1) + 1):
            part = (dot + 0.5 - first) / (last - first) if last > first else 0.0
            height = math.floor(low + part * (high - low))
            if 0 <= height < rows and (dot // across if self._ascii else dot) % every == 0:
                self._dot(dot, rows - 1 - height, across, up, style)

    def _dot(self, dot: int, row: int, across: int, up: int, style: str) -> None:
        cell = dot // across, row // up
        bits, first_style = self._dots.get(cell, (0, style))
        self._dots[cell] = (row % up if self._ascii else bits | DOTS[dot % across][row % up]), first_style

    def label(self, text: str, column: int, row: int, style: str = "") -> bool:
        """Writes it from that column on, with room on both sides; False where it has none."""
        taken = range(column - 1, column + len(text) + 1)
        if column < 0 or column + len(text) > self.columns or not 0 <= row < self.rows:
            return False
        if any((at, row) in self._cells for at in taken):
            return False
        for number, character in enumerate(text):
            self._cells[column + number, row] = (character, style)
        return True

    def mark(self, x: float, y: float, character: str, style: str = "", *, move: bool = True) -> bool:
        """At that place, or where there is room beside it (``move``); False where there is none, or outside."""
        cell = self.cell(x, y)
        if cell is None:
            return False
        for aside in ASIDE if move else (0,):
            at = cell[0] + aside, cell[1]
            if 0 <= at[0] < self.columns and at not in self._cells:
                self._cells[at] = (character, style)
                return True
        return False

    def text(self, x_title: str, y_title: str) -> Lines:
        """The plot with its axes: so many rows, and three more."""
        vertical, corner, tick, across, below = "|", "+", "+", "-", "+"
        if not self._ascii:
            vertical, corner, tick, across, below = "│", "└", "┤", "─", "┴"
        heights = {row: value for value in self.y.decades() if (row := self._row(value)) is not None}
        lines = [Text(y_title.rjust(LABEL + len(y_title) - 3), style="dim")]
        for row in range(self.rows):
            number = f"{_number(heights[row])} {tick}" if row in heights else vertical
            lines.append(Text.assemble((number.rjust(LABEL), "dim"), *self._row_of_cells(row)))
            lines[-1].rstrip()
        ticks, numbers = [across] * self.columns, [" "] * (LABEL + self.columns)
        for value in self.x.decades():
            column = min(int(self.x.place(value, self.columns)), self.columns - 1)
            ticks[column] = below
            number = _number(value)
            begin = min(LABEL + column - len(number) // 2, LABEL + self.columns - len(number))
            numbers[begin : begin + len(number)] = number
        lines.append(Text(corner.rjust(LABEL) + "".join(ticks), style="dim"))
        lines.append(Text("".join(numbers).rstrip(), style="dim"))
        lines.append(Text(x_title.rjust(LABEL + self.columns), style="dim"))
        found = Lines()
        for line in lines:
            found.append("\n" if found else "").append_text(line)
        return found

    def _row(self, value: float) -> int | None:
        cell = self.cell(self.x.low, value)
        return None if cell is None else cell[1]

    def _row_of_cells(self, row: int) -> list[tuple[str, str]]:
        """Neighbours of one style together."""
        cells = [self._character(column, row) for column in range(self.columns)]
        return [("".join(text for text, _ in same), style) for style, same in groupby(cells, itemgetter(1))]

    def _character(self, column: int, row: int) -> tuple[str, str]:
        if (column, row) in self._cells:
            return self._cells[column, row]
        if (column, row) not in self._dots:
            return " ", ""
        dots, style = self._dots[column, row]
        return HEIGHTS[dots] if self._ascii else chr(BRAILLE + dots), style


def _number(value: float) -> str:
    """A power of ten: ``0.01``, ``100``, ``1e+06``."""
    return f"{value:g}"
