"""The section on layer types."""

from __future__ import annotations

from hwprof.report.document.layer_types import LayerTypes
from hwprof.report.text import columns, figures
from hwprof.report.text.grid import Column
from hwprof.report.text.page import Page


def show(page: Page) -> None:
    """Time per layer type."""
    part = page.part(LayerTypes)
    if part is None:
        return
    rows = part.rows
    glyphs = page.glyphs
    shown = page.table(
        [
            Column("type", [row.type for row in rows], right=False, least=13),
            Column("layers", ["" if row.layers is None else str(row.layers) for row in rows]),
            Column("calls", [figures.calls(row.calls, glyphs) for row in rows], 13),
            Column("time ms", [figures.time_with_spread(row.time, glyphs) for row in rows]),
            *columns.minimum([row.time for row in rows], page),
            Column("share", [figures.percent(row.share, glyphs) for row in rows]),
            Column("", figures.bars([row.share for row in rows], glyphs), 8, right=False),
            Column("MACs", [figures.macs(row.macs, glyphs) for row in rows], 1),
            *columns.metric_columns(rows, page),
        ],
        "Time per layer type",
    )
    further = columns.footnotes([column for column in shown if column.key not in page.explained], page)
    page.notes(["share: of its layers together", *further])
