"""The page of the roofline: this machine's roofs, and where the layers with the most time lie below them."""

from __future__ import annotations

from typing import Final

import msgspec

from hwprof.errors import HwprofError
from hwprof.report.document.document import Document
from hwprof.report.document.roofline import Roofline, UnderRoofs


class HotRoofline(msgspec.Struct, kw_only=True, frozen=True):
    """What ``hwprof report --roofline`` shows."""

    run: str
    whole: str
    level: str | None  # of whose bytes the intensities are, that layers are drawn at; null: no layer has any
    roofline: Roofline  # with the layers that have the most time
    others: list[UnderRoofs]


PAGE: Final = HotRoofline


def select(document: Document, top: int) -> HotRoofline:
    """The ``top`` layers. Raises ``HwprofError`` where there is no roofline."""
    from hwprof.analysis.roofline import level_of_most

    found = document.part(Roofline)
    if found is None:
        why = document.absent["roofline"]
        raise HwprofError(f"this run has no roofline: {why.reason}", why.remedy)
    if not found.level_gbytes:
        raise HwprofError("this run has no roofline: its peaks have no level of the memory", "hwprof peaks --again")
    return HotRoofline(
        run=document.run.name,
        whole=document.whole,
        level=level_of_most((row.time_ns or 0.0, row.intensity) for row in found.rows),
        roofline=msgspec.structs.replace(found, rows=found.rows[:top]),
        others=found.rows[top:],
    )
