"""The page of lines: those of the pipeline that take the most."""

from __future__ import annotations

from typing import Final

import msgspec

from hwprof.errors import HwprofError
from hwprof.report.document.document import Document
from hwprof.report.document.lines import Lines


class HotLines(msgspec.Struct, kw_only=True, frozen=True):
    """What ``hwprof report --lines`` shows: by time, and by memory."""

    run: str
    lines: Lines
    memory: Lines


PAGE: Final = HotLines


def select(document: Document, top: int) -> HotLines:
    """The ``top`` lines of either kind. Raises ``HwprofError`` where nobody looked at lines."""
    found = document.part(Lines)
    if found is None:
        why = document.absent["lines"]
        raise HwprofError(f"nothing is known of lines in this run: {why.reason}", why.remedy)
    rows = found.of_pipeline()
    by_memory = sorted((row for row in rows if row.allocated_bytes), key=lambda row: -row.allocated_bytes)
    return HotLines(
        run=document.run.name,
        lines=msgspec.structs.replace(found, rows=rows[:top]),
        memory=msgspec.structs.replace(found, rows=by_memory[:top]),
    )
