"""The section on energy."""

from __future__ import annotations

from collections.abc import Sequence

from hwprof.report.document.energy import Energy, LayerEnergy, StageEnergy
from hwprof.report.text import figures
from hwprof.report.text.figures import Glyphs
from hwprof.report.text.grid import Column
from hwprof.report.text.page import Page
from hwprof.run.details import METER
from hwprof.unavailable import Unavailable


def show(page: Page) -> None:
    """Joules and watts of the stages; dashes where the window is shorter than the meter can tell."""
    part = page.part(Energy)
    if part is None:
        return
    show_stages(part, page)
    if part.layers:
        page.notes(["energy by layer: hwprof report --energy"])


def show_stages(part: Energy, page: Page) -> None:
    """The table."""
    rows = part.rows
    glyphs = page.glyphs
    vague = [row.joules_error is None or row.joules_error >= row.joules for row in rows]

    above_idle = [with_error(row.joules_above_idle, row.above_idle_error, glyphs) for row in rows]

    def known(texts: Sequence[str]) -> list[str]:
        return [glyphs.dash if hidden else text for text, hidden in zip(texts, vague, strict=True)]

    page.table(
        [
            Column("zone", [row.zone for row in rows], right=False, least=8),
            Column("stage", [row.stage for row in rows], right=False, least=11),
            Column("J", known([with_error(row.joules, row.joules_error, glyphs) for row in rows])),
            Column("W", known([with_error(row.watts, row.watts_error, glyphs) for row in rows])),
            Column("J/iteration", known([figures.three_digits(row.joules_per_iteration) for row in rows]), 1),
            Column("images/J", known([optional(row.images_per_joule, glyphs) for row in rows]), 1),
            Column("GFLOP/J", known([optional(row.gflop_per_joule, glyphs) for row in rows]), 2),
            Column(
                "J above idle",
                known(above_idle),
                2,
            ),
            Column("idle W", [with_error(row.idle_watts, row.idle_error, glyphs) for row in rows], 3),
        ],
        f"Energy of {measured(rows)}",
    )
    notes = [f"{glyphs.plus_minus} half the 95% interval, by the meter's refresh and the distance of two readings"]
    if any(vague):
        notes.append(f"{glyphs.dash} {Unavailable('error above the value', 'more --iterations')}")
    if any(row.gflop_per_joule is None for row in rows) and any(row.gflop_per_joule is not None for row in rows):
        notes.append("GFLOP/J: of the inference alone: what other stages compute is not known")
    if all(row.idle_watts is None for row in rows):
        notes.append("idle power included: no idle baseline was measured")
    page.notes(notes)


def measured(rows: Sequence[StageEnergy] | Sequence[LayerEnergy]) -> str:
    """What the meters of these rows measure."""
    return "what the power meter measures" if all(row.zone == METER for row in rows) else "the whole machine"


def optional(value: float | None, glyphs: Glyphs) -> str:
    """Three digits, or a dash."""
    return glyphs.dash if value is None else figures.three_digits(value)


def with_error(value: float | None, error: float | None, glyphs: Glyphs) -> str:
    """The value with half of its interval, or a dash."""
    if value is None or error is None:
        return glyphs.dash
    return f"{figures.three_digits(value)} {glyphs.plus_minus}{figures.three_digits(error)}"
