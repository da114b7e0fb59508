"""The console that reports are printed on."""

from __future__ import annotations

from typing import IO, Any

from rich.console import Console
from rich.text import Text


class TrimmedConsole(Console):
    """Prints lines without blanks at their ends, to which tables and paddings are filled up."""

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
