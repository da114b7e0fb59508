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
    of_layers(part.layers, page, f"Layers: energy of {energy.measured(part.layers)}, share of the {found.whole}'s")
    if part.missing_layers is not None:
        page.notes([f"no energy by layer: {part.missing_layers.reason}"])
    elif part.too_short:
        too_short = figures.plural(part.too_short, "layer")
        page.notes([f"{too_short} not told: error above {part.too_vague:.0%}. Try: more --iterations"])


def of_layers(rows: Sequence[LayerEnergy], page: Page, title: str) -> None:
    """A row a zone and layer."""
    if not rows:
        return
    glyphs = page.glyphs
    above_idle = [energy.with_error(row.joules_above_idle, row.above_idle_error, glyphs) for row in rows]
    page.table(
        [
            Column("layer", [row.path for row in rows], right=False, least=12),
            Column("zone", [row.zone for row in rows], 1, right=False, least=8),
            Column("J/iteration", [figures.three_digits(row.joules_per_iteration) for row in rows]),
            Column("share", [figures.percent(row.share, glyphs) for row in rows]),
            Column("J", [energy.with_error(row.joules, row.joules_error, glyphs) for row in rows]),
            Column("W", [energy.with_error(row.watts, row.watts_error, glyphs) for row in rows]),
            Column(
                "J above idle",
                above_idle,
                2,
            ),
            Column("GFLOP/J", [energy.optional(row.gflop_per_joule, glyphs) for row in rows], 1),
            Column("windows", [f"{row.windows:,}" for row in rows], 3),
        ],
        title,
    )
    page.notes([f"{glyphs.plus_minus} half the 95% interval, by the meter's refresh and the distance of two readings"])
