"""The console that reports are printed on."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import IO, Any, Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from hwprof.printable import printable

NO_BREAK: Final = "\N{NO-BREAK SPACE}"
"""Within a line's words that stay together."""

NARROWEST: Final = 20
WIDEST: Final = 1000
WITHOUT_TERMINAL: Final = 80
"""Columns: what is less than the first is taken for not given, as of a terminal that does not tell its size."""


class Lines(Text):
    """A text of hwprof's own making of which the ends of lines are meant; any other text is one line, which is broken
    where there is no room for it and nowhere else: names from outside may hold ends of lines."""


class TrimmedConsole(Console):
    """Prints lines without blanks at their ends, to which tables and paddings are filled up; what would move the
    terminal's cursor or colour it, or begin a line, which names from outside may hold, stands as a question mark."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As a console does it, of printable characters and line ends alone."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text, kept="\n"), segment.style)

    def render_lines(self, renderable: RenderableType, *arguments: Any, **options: Any) -> list[list[Segment]]:
        """As a console does it; so a text comes that stands in a table or has a margin."""
        return super().render_lines(_one_line(renderable), *arguments, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        """As a console does it; tables and the like line by line."""
        if len(objects) != 1 or isinstance(objects[0], str | Text) or options:
            super().print(*map(_one_line, objects), **options)
            return
        for line in self.render_lines(objects[0], pad=False):
            text = Text.assemble(*((segment.text, segment.style or "") for segment in line))
            text.rstrip()
            super().print(text, no_wrap=True, crop=False)


def _one_line(shown: Any) -> Any:
    """A text without ends of lines that are not hwprof's; anything else as it is."""
    if not isinstance(shown, Text) or isinstance(shown, Lines) or shown.plain.isprintable():
        return shown
    line = shown.copy()
    line.plain = printable(shown.plain, kept=NO_BREAK)
    return line


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
