"""The section on values over time that no other section shows: memory, and what collectors of one's own bring."""

from __future__ import annotations

from typing import Final

from hwprof.report.document.dram import PREFIX as DRAM
from hwprof.report.document.series import Series
from hwprof.report.text import figures
from hwprof.report.text.grid import Column
from hwprof.report.text.page import Page

SHOWN_ELSEWHERE: Final = ("energy/", DRAM)
"""Series with a section of their own."""


def show(page: Page) -> None:
    """Those of the pass that times are from; nothing where there are none."""
    part = page.part(Series)
    if part is None:
        return
    rows = [row for row in part.rows if row.pass_ == part.main and not row.series.startswith(SHOWN_ELSEWHERE)]
    if not rows:
        return
    number = len(rows)
    rows = rows[: page.document.hottest.top]

    def cells(name: str) -> list[str]:
        return [figures.reading(getattr(row, name), page.glyphs) for row in rows]

    page.table(
        [
            Column("series", [row.series for row in rows], right=False, least=11),
            Column("unit", [row.unit for row in rows], right=False, least=5),
            Column("mean", cells("mean")),
            Column("min", cells("min")),
            Column("max", cells("max")),
            Column("last", cells("last"), 1),
            Column("readings", [str(row.readings) for row in rows], 2),
        ],
        f"Memory and other series, pass {part.main}",
    )
    if number > len(rows):
        page.notes([f"{number - len(rows):,} further series: --top {number}, or series.csv"])
