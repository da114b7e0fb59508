"""The section on where the time goes: the whole in one line, and a bar a layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hwprof.report.document.time_budget import Budget, TimeBudget
from hwprof.report.text import figures
from hwprof.report.text.grid import Column
from hwprof.report.text.page import PATH, Page

LETTERS: Final = {
    "compute": "c",
    "layout": "l",
    "page_faults": "p",
    "allocation": "a",
    "waiting": "w",
    "dispatch": "d",
    "blocked": "b",
    "preempted": "x",
    "other": "o",
}
"""Of each part, in the bar."""

BAR: Final = 20
"""Characters: one is 5%."""

MUCH: Final = 0.1
WORTH_SAYING: Final = 0.005


def show(page: Page) -> None:
    """The whole, and the layers that the report is about as far as samples tell of them."""
    part = page.part(TimeBudget)
    if part is None:
        return
    known = {one.path: one for one in part.layers}
    rows = [known[layer.path] for layer in page.hottest() if layer.path in known]
    of_budgets([part.whole, *rows], page, f"Where the time goes, pass {part.pass_}: {in_words(part.whole)}")
    if rows or part.whole.parts:
        page.notes(notes(part))


def of_budgets(rows: Sequence[Budget], page: Page, title: str) -> None:
    """A row a layer; the inference's has no path."""
    glyphs = page.glyphs

    def shares(header: str, part: str, priority: int) -> list[Column]:
        """None where no row has any; where one has much of it, no narrow table leaves it out."""
        of_rows = [one.share(part) for one in rows]
        cells = [figures.percent(share, glyphs) if share else "" for share in of_rows]
        return [Column(header, cells, 1 if max(of_rows, default=0.0) >= MUCH else priority)] if any(cells) else []

    page.table(
        [
            Column(
                "layer", [one.path or page.document.whole for one in rows], right=False, least=PATH, among=page.paths
            ),
            Column("ms", [figures.milliseconds(one.elapsed_ns) for one in rows]),
            Column("budget", [bar(one) for one in rows], right=False),
            *shares("compute", "compute", 1),
            *shares("layout", "layout", 1),
            *shares("faults", "page_faults", 2),
            *shares("waiting", "waiting", 1),
            *shares("dispatch", "dispatch", 1),
            *shares("allocation", "allocation", 3),
            *shares("blocked", "blocked", 4),
            *shares("preempted", "preempted", 3),
            *shares("other", "other", 3),
            Column("samples", [f"{one.samples:,}" for one in rows], 5),
        ],
        title,
    )


def notes(part: TimeBudget) -> list[str]:
    """What the letters are, as far as there are any."""
    return [
        letters([part.whole, *part.layers]),
        "of the elapsed time, by what the calling thread did (hwprof explain budget); all threads: JSON, CSV",
    ]


def letters(budgets: Sequence[Budget]) -> str:
    """What those stand for that are in the bars."""
    found = {one.part for budget in budgets for one in budget.parts}
    known = [f"{letter} {name.replace('_', ' ')}" for name, letter in LETTERS.items() if name in found]
    return f"budget: 5% a letter: {', '.join(known)}"


def in_words(budget: Budget) -> str:
    """``compute 58%, layout 17%, waiting 11%``: all parts from half a per cent on, largest first."""
    parts = sorted(budget.parts, key=lambda one: -one.share)
    return ", ".join(f"{one.part.replace('_', ' ')} {one.share:.0%}" for one in parts if one.share >= WORTH_SAYING)


def bar(budget: Budget, width: int = BAR) -> str:
    """``ccccccccccccllllppww``: as many letters of each part as it has of the time."""
    letters_of = apportioned({part: budget.share(part) for part in LETTERS}, width)
    return "".join(letter * letters_of[part] for part, letter in LETTERS.items())


def apportioned(shares: Mapping[str, float], number: int) -> dict[str, int]:
    """So many units for shares of a whole: each has its whole ones, and what is left goes to those that lack least of
    one more (Hamilton's method), so that no part has one that a larger part has not."""
    exact = {name: number * max(0.0, share) for name, share in shares.items()}
    found = {name: int(units) for name, units in exact.items()}
    left = min(number, round(sum(exact.values()))) - sum(found.values())
    for name in sorted(exact, key=lambda one: found[one] - exact[one])[: max(0, left)]:
        found[name] += 1
    return found
