"""The page of calls: the functions of each stage with the most self time."""

from __future__ import annotations

from typing import Final

import msgspec

from hwprof.errors import HwprofError
from hwprof.report.document.cprofile import CProfile, PythonCalls
from hwprof.report.document.document import Document


class HotCProfile(msgspec.Struct, kw_only=True, frozen=True):
    """What ``hwprof report --cprofile`` shows."""

    run: str
    cprofile: CProfile


PAGE: Final = HotCProfile


def select(document: Document, top: int) -> HotCProfile:
    """The ``top`` functions of each stage. Raises ``HwprofError`` where nobody counted."""
    found = document.part(CProfile)
    if found is None:
        why = document.absent["cprofile"]
        raise HwprofError(f"no calls were counted in this run: {why.reason}", why.remedy)
    rows: list[PythonCalls] = []
    for stage in dict.fromkeys(row.stage for row in found.rows):
        rows += [row for row in found.listed() if row.stage == stage][:top]
    return HotCProfile(run=document.run.name, cprofile=msgspec.structs.replace(found, rows=rows))
