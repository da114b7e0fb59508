"""The report on a terminal: readable at 80 columns, rich from 120 on, the same words without colours."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from hwprof.report import sections
from hwprof.report.document.document import Document
from hwprof.report.text import header
from hwprof.report.text.page import Page


def render(document: Document, console: Console, metrics: Sequence[str] | None = None) -> None:
    """Prints the whole report in the console's width. ``metrics``: the columns of metrics; None: the usual ones."""
    page = Page(document, console, metrics)
    header.show(page)
    for section in sections.of_room("text"):
        section.text.show(page)
