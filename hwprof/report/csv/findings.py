"""``findings.csv``: causes of lost time."""

from __future__ import annotations

from typing import Final

from hwprof.report.csv.table import Table
from hwprof.report.document.document import Document
from hwprof.report.document.findings import Findings

FILE: Final = "findings.csv"


def files(document: Document) -> dict[str, Table]:
    """A row a finding, what could win most first, its layers separated by ``;``; nothing where there is none."""
    part = document.part(Findings)
    if part is None or not part.rows:
        return {}
    names = {"rule": "rule", "title": "title", "evidence": "evidence", "remedy": "remedy",
             "gain_low": "gain_low_ratio", "gain_high": "gain_high_ratio"}  # fmt: skip
    columns = {header: [getattr(one, name) for one in part.rows] for name, header in names.items()}
    return {FILE: Table({**columns, "layers": [";".join(one.layers) for one in part.rows]})}
