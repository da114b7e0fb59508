"""Tables that fit the width: columns are chosen by priority, rows never wrap, long names are cut in the middle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rich import box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from hwprof.report.text.figures import Glyphs, shorten

GAP: Final = 2
ALWAYS: Final = 0


@dataclass(eq=False)
class Column:
    """One column. ``priority`` 0 is always shown, then the lowest first while there is room. ``least``: to how many
    characters its cells may be cut in the middle; None: they are shown whole or not at all."""

    header: str
    cells: list[str]
    priority: int = ALWAYS
    right: bool = True
    least: int | None = None
    key: str = ""  # the metric or event behind it
    width: int = field(init=False)

    def __post_init__(self) -> None:
        self.width = max(cell_len(text) for text in (self.header, *self.cells))

    @property
    def needed(self) -> int:
        """The fewest characters it can do with."""
        return self.width if self.least is None else min(self.width, self.least)


def fits_whole(columns: Sequence[Column], width: int) -> bool:
    """Whether every one of the columns has room, with no cell cut but in columns that may be."""
    return sum(column.needed + GAP for column in columns) - GAP <= width


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


def table(columns: Sequence[Column], glyphs: Glyphs, footer_rows: int = 0) -> Table:
    """The fitted columns as a Rich table; the last ``footer_rows`` rows stand below a line."""
    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0), highlight=False)
    for column in columns:
        grid.add_column(
            Text(shorten(column.header, column.width, glyphs.ellipsis)),
            justify="right" if column.right else "left",
            width=column.width,
            no_wrap=True,
        )
    rows = list(zip(*(column.cells for column in columns), strict=True))
    for number, row in enumerate(rows):
        texts = [Text(shorten(text, column.width, glyphs.ellipsis)) for text, column in zip(row, columns, strict=True)]
        grid.add_row(*texts, end_section=footer_rows > 0 and number == len(rows) - footer_rows - 1)
    return grid
