"""Tables that fit the width: columns are chosen by priority, rows never wrap, long names are cut in the middle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from hwprof.printable import printable
from hwprof.report.text.console import Lines
from hwprof.report.text.figures import Glyphs, shorten
from hwprof.report.text.names import shorten_apart

GAP: Final = 2
ALWAYS: Final = 0

_FILLER: Final = "\0"
"""Behind a character that takes the room of two, while it is not printed."""


@dataclass(eq=False)
class Column:
    """One column. ``priority`` 0 is always shown, then the lowest first while there is room. ``least``: to how many
    characters its cells may be cut in the middle; None: they are shown whole or not at all. ``most``: how many
    characters of them are shown, however much room there is. ``among``: names that a cut one could be taken for."""

    header: str
    cells: list[str]
    priority: int = ALWAYS
    right: bool = True
    least: int | None = None
    most: int | None = None
    among: Sequence[str] = ()
    key: str = ""  # the metric or event behind it
    marks: str = ""  # what stands behind some of its cells and is explained below the table
    reasons: tuple[str, ...] = ()  # why some of its cells are dashes
    width: int = field(init=False)

    def __post_init__(self) -> None:
        self.width = max(cell_len(text) for text in (self.header, *self.cells))
        if self.most is not None:
            self.width = min(self.width, self.most)

    @property
    def needed(self) -> int:
        """The fewest characters it can do with."""
        return self.width if self.least is None else min(self.width, self.least)


def whole_width(columns: Sequence[Column]) -> int:
    """From which width on every one of the columns has room, with no cell cut but in columns that may be."""
    return sum(column.needed + GAP for column in columns) - GAP


def fits_whole(columns: Sequence[Column], width: int) -> bool:
    """Whether every one of the columns has room."""
    return whole_width(columns) <= width


def fit(columns: Sequence[Column], width: int) -> list[Column]:
    """The columns to show, in their order, with their widths set so that a row has at most ``width`` characters.

    Where not even the columns of priority 0 have room, the last of these go until the rest has.
    """
    chosen = sorted(columns, key=lambda column: column.priority)
    kept: list[Column] = []
    for column in chosen:
        if sum(other.needed + GAP for other in kept) + column.needed <= width:
            kept.append(column)
    shown = [column for column in columns if column in kept]
    room = width - sum(column.needed + GAP for column in shown) + GAP
    for column in shown:
        wanted = column.width - column.needed
        column.width = column.needed + min(wanted, max(room, 0))
        room -= wanted
    return shown


def table(columns: Sequence[Column], glyphs: Glyphs, footer_rows: int = 0) -> Text:
    """The fitted columns as one text; the last ``footer_rows`` rows stand below an empty line.

    Rich's own tables lay out every cell by itself, which takes several times as long as all else in a report.
    """
    header = _line([shorten(column.header, column.width, glyphs.ellipsis) for column in columns], columns)
    cut = [_cut(column.cells, column, glyphs.ellipsis, column.among) for column in columns]
    rows = [_line(cells, columns) for cells in zip(*cut, strict=True)]
    if 0 < footer_rows < len(rows):
        rows.insert(len(rows) - footer_rows, "")
    width = sum(column.width + GAP for column in columns) - GAP
    return Lines.assemble((header, "bold"), "\n", glyphs.rule * width, *(f"\n{row}" for row in rows), no_wrap=True)


def _cut(texts: Sequence[str], column: Column, ellipsis: str, among: Sequence[str] = ()) -> list[str]:
    """The texts, each on one line (names come from outside), as wide as the column at most."""
    lines = [printable(text) for text in texts]
    if all(cell_len(line) == len(line) for line in lines):
        return shorten_apart(lines, column.width, ellipsis, among)
    cut = shorten_apart([*map(_filled, lines)], column.width, ellipsis, [*map(_filled, among)])
    return [_without_halves(line) for line in cut]


def _filled(text: str) -> str:
    """With a filler behind each character that takes the room of two: as many characters as cells."""
    return "".join(one + _FILLER * (cell_len(one) - 1) for one in printable(text))


def _without_halves(filled: str) -> str:
    """The text without fillers, and without a wide character that the cut left no second half of."""
    kept = zip(filled, filled[1:] + " ", strict=True)
    return "".join(one for one, behind in kept if one != _FILLER and (cell_len(one) < 2 or behind == _FILLER))


def _line(cells: Sequence[str], columns: Sequence[Column]) -> str:
    """The cells of a row beside one another, filled up to their columns' widths."""
    texts = []
    for text, column in zip(cells, columns, strict=True):
        blank = " " * (column.width - cell_len(text))
        texts.append(blank + text if column.right else text + blank)
    separator = " " * GAP
    return separator.join(texts).rstrip()
