"""The console that reports are printed on."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import IO, Any, Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from hwprof.printable import printable

NARROWEST: Final = 20
WIDEST: Final = 1000
WITHOUT_TERMINAL: Final = 80
"""Columns: what is less than the first is taken for not given, as of a terminal that does not tell its size."""


class TrimmedConsole(Console):
    """Prints lines without blanks at their ends, to which tables and paddings are filled up; what would move the
    terminal's cursor or colour it, which names from outside may hold, stands as a question mark."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As a console does it, of printable characters and line ends alone."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text, kept="\n"), segment.style)

    def print(self, *objects: Any, **options: Any) -> None:
        """As a console does it; tables and the like line by line."""
        if len(objects) != 1 or isinstance(objects[0], str | Text) or options:
            super().print(*objects, **options)
            return
        for line in self.render_lines(objects[0], pad=False):
            text = Text.assemble(*((segment.text, segment.style or "") for segment in line))
            text.rstrip()
            super().print(text, no_wrap=True, crop=False)


def make_console(width: int | None = None, file: IO[str] | None = None) -> Console:
    """A console, on standard output unless told otherwise, that takes text as it is; NO_COLOR and pipes switch colours
    off. Without a width it is as wide as the terminal or COLUMNS say, where that can be."""
    console = TrimmedConsole(width=width, file=file, highlight=False, markup=False, emoji=False)
    if not NARROWEST <= console.width <= WIDEST:
        console.width = WIDEST if console.width > WIDEST else _of_terminal()
    return console


def _of_terminal() -> int:
    """The columns of the terminal itself, whatever COLUMNS says; of what is none, 80."""
    try:
        found = os.get_terminal_size().columns
    except OSError:
        return WITHOUT_TERMINAL
    return found if found >= NARROWEST else WITHOUT_TERMINAL
