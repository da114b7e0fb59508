"""The console that reports are printed on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text


class TrimmedConsole(Console):
    """Prints lines without blanks at their ends, to which tables and paddings are filled up; what would move the
    terminal's cursor or colour it, which names from outside may hold, stands as a question mark."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As a console does it, of printable characters and line ends alone."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                clean = "".join(one if one.isprintable() or one == "\n" else "?" for one in segment.text)
                yield Segment(clean, segment.style)

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
    off."""
    return TrimmedConsole(width=width, file=file, highlight=False, markup=False, emoji=False)
