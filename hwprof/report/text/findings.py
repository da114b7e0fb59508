"""The section on findings: what to change first, a paragraph each."""

from __future__ import annotations

from typing import Final

from rich.padding import Padding
from rich.text import Text

from hwprof.report.document.findings import Finding, Findings
from hwprof.report.text.page import Page

MOST: Final = 5


def show(page: Page) -> None:
    """Nothing where no rule found its cause."""
    part = page.part(Findings)
    if part is None or not part.rows:
        return
    page.title("What to change first")
    for number, one in enumerate(part.rows[:MOST], 1):
        for indent, text in (
            (0, f"{number} {one.title}: up to {one.gain_high:.0%} of the {one.gain_of}"),
            *_further(one),
        ):
            page.console.print(Padding(Text(text, overflow="fold"), (0, 0, 0, 2 + indent)))
    page.notes(["up to: what the cause takes, at most; no remedy was tried (hwprof explain findings)"])


def _further(one: Finding) -> tuple[tuple[int, str], ...]:
    return (2, f"{one.evidence}: {one.meaning}"), (2, f"Try: {one.remedy}")
