"""The page of memory: the process, the allocator, and the layers with the most new pages."""

from __future__ import annotations

from typing import Final

import msgspec

from hwprof.errors import HwprofError
from hwprof.report.document.document import Document
from hwprof.report.document.memory import Memory
from hwprof.report.document.series import Series, SeriesSummary

PREFIXES: Final = ("memory/", "allocator/")


class HotMemory(msgspec.Struct, kw_only=True, frozen=True):
    """What ``hwprof report --memory`` shows."""

    run: str
    whole: str
    memory: Memory
    series: list[SeriesSummary]  # of the process and its allocator


PAGE: Final = HotMemory


def select(document: Document, top: int) -> HotMemory:
    """The ``top`` layers. Raises ``HwprofError`` where nobody watched."""
    found, series = document.part(Memory), document.part(Series)
    if found is None:
        why = document.absent["memory"]
        raise HwprofError(f"nothing is known of memory in this run: {why.reason}", why.remedy)
    rows = [row for row in series.rows if row.series.startswith(PREFIXES)] if series else []
    chosen = msgspec.structs.replace(found, rows=found.rows[:top], modules=found.modules[:top])
    return HotMemory(run=document.run.name, whole=document.whole, memory=chosen, series=rows)
