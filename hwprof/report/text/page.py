"""What the sections of the terminal report share: the document, the console, and how tables and notes are printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from hwprof.report.document.document import Document
from hwprof.report.document.layers import Layer, Layers
from hwprof.report.document.part import Part
from hwprof.report.text import choice
from hwprof.report.text.figures import Glyphs, glyphs_of, some
from hwprof.report.text.footnotes import MOST
from hwprof.report.text.grid import Column, fit, table, whole_width

P = TypeVar("P", bound=Part)

PATH: Final = 24
"""To how many characters a layer's path may be cut before a column goes instead."""

INDENT: Final = 2
"""Of footnotes."""

TENS: Final = 10
"""Widths that a reader is told are multiples of it."""

WIDE: Final = 120
"""Characters from which on there is room for more than figures."""


class Page:
    """Prints tables and notes of a document. ``metrics``: those that were asked for, None: the usual ones."""

    def __init__(self, document: Document, console: Console, metrics: Sequence[str] | None = None) -> None:
        self.document = document
        self.console = console
        self.metrics = metrics
        found = document.part(Layers)
        self.layers: list[Layer] = found.rows if found is not None else []
        self.paths = [layer.path for layer in self.layers]
        self.unattributed = found.unattributed if found is not None else None
        self.whole = found.whole if found is not None else None
        self.explained: set[str] = set()  # metrics whose columns stood in a table above, with their footnotes
        self._noted: set[str] = set()
        self.glyphs: Glyphs = glyphs_of(console.encoding)

    def part(self, kind: type[P]) -> P | None:
        """A section's part of the document; None where the run has nothing of it."""
        return self.document.part(kind)

    @property
    def wide(self) -> bool:
        """Whether there is room for more than figures."""
        return self.console.width >= WIDE

    def hottest(self) -> list[Layer]:
        """The layers that the report is about."""
        by_path = {layer.path: layer for layer in self.layers}
        return [by_path[path] for path in self.document.hottest.layers]

    def table(self, candidates: list[Column], title: str, footer_rows: int = 0) -> list[Column]:
        """Prints the columns that fit below a title, and returns them."""
        self.title(title)
        return self.rows(candidates, footer_rows)

    def rows(self, candidates: list[Column], footer_rows: int = 0) -> list[Column]:
        """Prints the columns that fit, and returns them; not those of dashes alone that nobody asked for."""
        told = [*candidates[:1], *(column for column in candidates[1:] if self._says_something(column))]
        wanted = whole_width(told)
        shown = fit(told, self.console.width)
        self.console.print(table(shown, self.glyphs, footer_rows))
        self.notes([self._left_out([column for column in told if column not in shown], shown, wanted)])
        return shown

    def _left_out(self, columns: Sequence[Column], shown: Sequence[Column], wanted: int) -> str:
        """Which columns had no room, the most important first, and how wide the report is that has them. Of metrics
        that were asked for others tell."""
        ordered = sorted(columns, key=lambda column: column.priority)
        keys = {column.key for column in shown}
        asked = self.metrics is not None
        missed = [one for one in ordered if not (asked and one.key) and not choice.says_the_same(one.key, keys)]
        names = [column.header for column in missed if column.header]
        width = f"Try: --width {-(-wanted // TENS) * TENS}"
        wordings = [f"left out: {some(names, most).rstrip('.')}. {width}" for most in range(len(names), 0, -1)]
        room = min(self.console.width - INDENT, MOST)
        return next((words for words in wordings if len(words) <= room), wordings[-1]) if wordings else ""

    def _says_something(self, column: Column) -> bool:
        """Whether it has more than dashes, or was asked for."""
        asked = column.key and column.key in (self.document.hottest.sort, *(self.metrics or ()))
        cells = {cell.strip() for cell in column.cells}
        return bool(asked) or not (self.glyphs.dash in cells and cells <= {self.glyphs.dash, ""})

    def title(self, text: str) -> None:
        """Prints a section's title."""
        self.console.print()
        self.console.print(Text(text, style="bold"))

    def notes(self, notes: Sequence[str]) -> None:
        """Prints footnotes; empty ones, and what stands below a table above, are left out."""
        for note in notes:
            if note and note not in self._noted:
                self._noted.add(note)
                self.console.print(Padding(Text(note, style="dim"), (0, 0, 0, INDENT)))
