"""The section on DRAM traffic of the whole machine."""

from __future__ import annotations

from typing import Final

from hwprof.report.document.dram import PREFIX, Dram, Traffic
from hwprof.report.text import figures
from hwprof.report.text.grid import Column
from hwprof.report.text.page import Page
from hwprof.unavailable import Unavailable

SERIES: Final = ("dram-read", "dram-write", "dram-total")


def show(page: Page) -> None:
    """GB/s of the stages; dashes where the readings cannot tell. Nothing without readings."""
    part = page.part(Dram)
    rows = [row for row in part.rows if row.kind == "stage"] if part is not None else []
    if part is None or not rows:
        return
    owners = list(dict.fromkeys(row.owner for row in rows))
    found = {(row.owner, row.series.removeprefix(PREFIX)): row for row in rows}
    names = [name for name in SERIES if any(series == name for _, series in found)]
    dash = page.glyphs.dash
    page.table(
        [
            Column("stage", owners, right=False, least=11),
            Column("windows", [str(max(row.windows for row in rows if row.owner == owner)) for owner in owners], 2),
            *(
                Column(
                    f"{name.replace('-', ' ').removeprefix('dram ')} GB/s",
                    [_rate(found.get((owner, name)), page) for owner in owners],
                )
                for name in names
            ),
        ],
        "DRAM traffic of the whole machine",
    )
    notes = [f"traffic of every program; {page.glyphs.plus_minus} what moved between the readings around each edge"]
    if any(row.gbytes_per_s is None for row in rows):
        notes.append(
            f"{dash} {Unavailable(f'stage too short for the reading interval, error above {part.largest_error:.0%}')}"
        )
    page.notes(notes)


def _rate(row: Traffic | None, page: Page) -> str:
    if row is None or row.gbytes_per_s is None or row.gbytes_per_s_error is None:
        return page.glyphs.dash
    error = figures.three_digits(row.gbytes_per_s_error)
    return f"{figures.three_digits(row.gbytes_per_s)} {page.glyphs.plus_minus}{error}"
