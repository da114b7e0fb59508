"""The section on energy."""

from __future__ import annotations

from collections.abc import Sequence

from hwprof.report.document.energy import Energy
from hwprof.report.text import figures
from hwprof.report.text.figures import Glyphs
from hwprof.report.text.grid import Column
from hwprof.report.text.page import Page
from hwprof.unavailable import Unavailable


def show(page: Page) -> None:
    """Joules and watts of the stages; dashes where the window is shorter than the meter can tell."""
    part = page.part(Energy)
    if part is None:
        return
    rows = part.rows
    glyphs = page.glyphs
    vague = [row.joules_error is None or row.joules_error >= row.joules for row in rows]

    def known(texts: Sequence[str]) -> list[str]:
        return [glyphs.dash if hidden else text for text, hidden in zip(texts, vague, strict=True)]

    page.table(
        [
            Column("zone", [row.zone for row in rows], right=False, least=8),
            Column("stage", [row.stage for row in rows], right=False, least=11),
            Column("J", known([_with_error(row.joules, row.joules_error, glyphs) for row in rows])),
            Column("W", known([_with_error(row.watts, row.watts_error, glyphs) for row in rows])),
            Column("J/iteration", known([figures.three_digits(row.joules_per_iteration) for row in rows]), 1),
            Column("images/J", known([_optional(row.images_per_joule, glyphs) for row in rows]), 1),
            Column("GFLOP/J", known([_optional(row.gflop_per_joule, glyphs) for row in rows]), 2),
            Column("J above idle", known([_optional(row.joules_above_idle, glyphs) for row in rows]), 2),
            Column("idle W", [_optional(row.idle_watts, glyphs) for row in rows], 3),
        ],
        "Energy of the whole machine",
    )
    notes = [f"{glyphs.plus_minus} bound of the error: 2 x W x reading interval per stage call"]
    if any(vague):
        notes.append(f"{glyphs.dash} {Unavailable('error above the value', 'more --iterations')}")
    if all(row.idle_watts is None for row in rows):
        notes.append("idle power included: no idle baseline was measured")
    page.notes(notes)


def _optional(value: float | None, glyphs: Glyphs) -> str:
    return glyphs.dash if value is None else figures.three_digits(value)


def _with_error(value: float | None, error: float | None, glyphs: Glyphs) -> str:
    if value is None or error is None:
        return glyphs.dash
    return f"{figures.three_digits(value)} {glyphs.plus_minus}{figures.three_digits(error)}"
