"""Lines of the first screen: those with a name before them (``WHERE  c compute 58, …``), and those of facts."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from hwprof.printable import printable
from hwprof.report.document.time_budget import TimeBudget
from hwprof.report.text import console, figures
from hwprof.report.text.page import Page
from hwprof.unavailable import explain

MARGIN: Final = 7
"""Characters before a line's text: its name."""

NO_BREAK: Final = console.NO_BREAK

DISTURBED: Final = 0.2
"""Of the elapsed time: with more of it taken by others, rules that find nothing say nothing."""


UNSURE: Final = 0.2
"""The width of an interval from which on a share of the time tells little."""


def absent(page: Page, name: str, section: str) -> None:
    """Why the document has nothing of a section."""
    why = page.document.absent.get(section)
    named(page, name, f"not available: {explain(why.reason, why.remedy)}" if why is not None else "not available", True)


def named(page: Page, name: str, text: str, whole: bool = False) -> None:
    """One line behind its name; ``whole``: as many as it takes."""
    room, ellipsis = page.console.width - MARGIN, page.glyphs.ellipsis
    text = printable(text, kept=NO_BREAK)
    lines = _wrapped(text, room) if whole else [figures.shorten(text, room, ellipsis, head=room - len(ellipsis))]
    for number, line in enumerate(lines):
        page.console.print(Text.assemble((f"{'' if number else name:<{MARGIN}}", "bold"), line, no_wrap=True))


def facts(page: Page, words: Sequence[str], style: str = "") -> None:
    """Words with separators between them, where alone a line ends, unless a word is longer than one."""
    room, separator = page.console.width, page.glyphs.separator
    text = printable(
        separator.join(word.replace(" ", NO_BREAK) if len(word) <= room else word for word in words), kept=NO_BREAK
    )
    if cell_len(text) > len(text):  # characters of two columns, which only Rich counts
        page.console.print(Text(separator.join(words), style))
        return
    for line in _wrapped(text, room):
        page.console.print(Text(line, style, no_wrap=True))


def _wrapped(text: str, width: int) -> list[str]:
    indent = " " * (len(text) - len(text.lstrip(" ")))
    lines = textwrap.wrap(text, width, subsequent_indent=indent)
    return [line.replace(NO_BREAK, " ") for line in lines] or [""]


def by_few_samples(page: Page) -> str:
    """``, by 17 samples only``: where some share of the budget may as well be another one; else empty."""
    part = page.part(TimeBudget)
    widths = [(one.share_high or 0.0) - (one.share_low or 0.0) for one in part.whole.parts] if part is not None else []
    if part is None or max(widths, default=0.0) < UNSURE:
        return ""
    return f", by {figures.plural(part.whole.samples, 'sample')} only"


def preempted(page: Page) -> float:
    """Of the time that the budget is of."""
    part = page.part(TimeBudget)
    return part.whole.share("preempted") if part is not None else 0.0
