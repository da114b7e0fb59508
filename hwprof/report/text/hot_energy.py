"""What ``hwprof report --energy`` prints: joules and watts of the stages, and of the layers."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from hwprof.report.document.energy import LayerEnergy
from hwprof.report.document.hot_energy import HotEnergy
from hwprof.report.text import energy, figures
from hwprof.report.text.grid import Column
from hwprof.report.text.page import Page


def show(found: HotEnergy, page: Page) -> None:
    """Layers that the meter cannot tell are left out, and how many those are."""
    part = found.energy
    page.console.print(Text(f"run {found.run}"))
    energy.show_stages(part, page)
    of_layers(part.layers, page, f"Layers: energy of the whole machine, share of the {found.whole}'s")
    told = len({row.path for row in part.layers})
    if part.too_short:
        page.notes([f"{part.too_short} layers are too short for the meter: error above {part.too_vague:.0%}"])
    elif not told:
        page.notes(["no layer's energy: modules of several threads ran at a time"])


def of_layers(rows: Sequence[LayerEnergy], page: Page, title: str) -> None:
    """A row a zone and layer."""
    if not rows:
        return
    glyphs = page.glyphs
    page.table(
        [
            Column("layer", [row.path for row in rows], right=False, least=12),
            Column("zone", [row.zone for row in rows], 1, right=False, least=8),
            Column("J/iteration", [figures.three_digits(row.joules_per_iteration) for row in rows]),
            Column("share", [figures.percent(row.share, glyphs) for row in rows]),
            Column("J", [energy.with_error(row.joules, row.joules_error, glyphs) for row in rows]),
            Column("W", [energy.with_error(row.watts, row.watts_error, glyphs) for row in rows]),
            Column("J above idle", [energy.optional(row.joules_above_idle, glyphs) for row in rows], 2),
            Column("GFLOP/J", [energy.optional(row.gflop_per_joule, glyphs) for row in rows], 1),
            Column("calls", [f"{row.windows:,}" for row in rows], 3),
        ],
        title,
    )
    page.notes([f"{glyphs.plus_minus} half the 95% interval, by the meter's refresh and the distance of two readings"])
