"""The section on findings: what to change first, a paragraph each."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from rich.padding import Padding
from rich.text import Text

from hwprof.printable import printable
from hwprof.report.document.findings import Finding, Findings
from hwprof.report.text import trials
from hwprof.report.text.page import Page

MOST: Final = 5


def show(page: Page) -> None:
    """Nothing where no rule found its cause."""
    part = page.part(Findings)
    if part is None:
        return
    of_rows(part.rows[:MOST], part, page)
    if part.trials is not None:
        page.title("Remedies that were tried")
        trials.show(part.trials, page.console, printable(shlex.quote(page.document.run.name)))


def of_rows(rows: Sequence[Finding], part: Findings, page: Page) -> None:
    """In the order of what they could win."""
    if not rows:
        return
    page.title("What to change first")
    for number, one in enumerate(rows, 1):
        for indent, text in (
            (0, f"{number} {one.title}: {_gain(one)}"),
            (2, f"{one.evidence}: {one.meaning}"),
            (2, f"Try: {one.remedy}" if one.remedy is not None else "Nothing is known to help further"),
        ):
            page.console.print(Padding(Text(text, overflow="fold"), (0, 0, 0, 2 + indent)))
    page.notes([f"up to: what the cause takes at most{_tried(part)} (hwprof explain findings)", *_added_up(part)])


def _tried(part: Findings) -> str:
    """What is known of remedies; nothing where none can be tried."""
    if part.trials is not None:
        return "; tried: see below"
    return "; no remedy was tried: hwprof try" if any(one.remedies for one in part.rows) else ""


def _added_up(part: Findings) -> list[str]:
    """Why the first screen has other sums, and may have another order."""
    several = any(len(one.causes) > 1 for one in part.actions)
    return ["by cause; the first screen (DO) is by remedy, and adds up the causes of each"] if several else []


def _gain(one: Finding) -> str:
    low, high = f"{one.gain_low:.0%}", f"{one.gain_high:.0%}"
    if one.gain_low > 0:
        return f"{high if low == high else f'{low} to {high}'} of the {one.gain_of}"
    return f"up to {high} of the {one.gain_of}"
