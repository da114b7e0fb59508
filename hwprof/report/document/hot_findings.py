"""The page of findings: causes of lost time, their remedies, and what these brought where they were tried."""

from __future__ import annotations

from typing import Final

import msgspec

from hwprof.errors import HwprofError
from hwprof.report.document.document import Document
from hwprof.report.document.findings import Findings


class HotFindings(msgspec.Struct, kw_only=True, frozen=True):
    """What ``hwprof report --findings`` shows."""

    run: str
    findings: Findings


PAGE: Final = HotFindings


def select(document: Document, top: int) -> HotFindings:
    """The ``top`` findings and actions. Raises ``HwprofError`` where nothing can be found."""
    found = document.part(Findings)
    if found is None:
        why = document.absent["findings"]
        raise HwprofError(f"the run has no findings: {why.reason}", why.remedy)
    chosen = msgspec.structs.replace(found, rows=found.rows[:top], actions=found.actions[:top])
    return HotFindings(run=document.run.name, findings=chosen)
