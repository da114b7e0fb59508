"""The section on how the machine drifted: what an iteration took, and the core's frequency, drawn over time."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final

from hwprof.report.document.over_time import OverTime
from hwprof.report.text import figures
from hwprof.report.text.grid import Column
from hwprof.report.text.page import Page

FEWEST: Final = 9
"""With fewer iterations there is no trend to see."""

LEAST_RANGE: Final = 0.1
"""Of the least value, from the lowest character to the highest: less than that is noise, and looks flat."""

REMARKS: Final = {"timed": "", "counted": "counted ", "bare": "bare "}


def show(page: Page) -> None:
    """Nothing of few iterations."""
    part = page.part(OverTime)
    if part is None or part.iterations < FEWEST:
        return
    drawn: dict[str, list[float | None]] = {
        "iteration ms": [one.median_ns / 1e6 for one in part.parts],
        "core GHz": [one.ghz for one in part.parts],
    }
    known = {name: numbers for name, values in drawn.items() if (numbers := [one for one in values if one is not None])}

    def cells(of: Sequence[float]) -> list[str]:
        return [figures.three_digits(one) for one in of]

    number = figures.plural(part.iterations, f"{REMARKS[part.kind]}iteration")
    page.table(
        [
            Column("", list(known), right=False),
            Column("from begin to end", [spark(drawn[name], page.glyphs) for name in known], right=False),
            Column("min", cells([min(values) for values in known.values()])),
            Column("median", cells([median(values) for values in known.values()]), 1),
            Column("max", cells([max(values) for values in known.values()])),
        ],
        f"Over time, pass {part.pass_}: {number} in {figures.three_digits(part.seconds)} s",
    )
    low, high = figures.levels(page.glyphs)
    each = "an iteration"
    if part.iterations > len(part.parts):
        each = f"the median of {part.iterations / len(part.parts):,.0f} iterations"
    page.notes([f"a character: {each}; {low} least, {high} most or {LEAST_RANGE:.0%} above the least"])


def spark(values: Sequence[float | None], glyphs: figures.Glyphs) -> str:
    """A character each: its height between the least and the most of them; a blank where there is none."""
    known = [value for value in values if value is not None]
    low = min(known, default=0.0)
    high = max([*known, low * (1 + LEAST_RANGE)], default=0.0)
    return "".join(
        " " if value is None else figures.level((value - low) / (high - low) if high > low else 0.0, glyphs)
        for value in values
    )
