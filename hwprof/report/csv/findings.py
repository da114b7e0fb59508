"""``findings.csv``: causes of lost time."""

from __future__ import annotations

from typing import Final

from hwprof.report.csv.table import Field, File, Table, table_of
from hwprof.report.document.document import Document
from hwprof.report.document.findings import Finding, Findings

FILE: Final = "findings.csv"
COLUMNS: Final = {
    **{name: Field(Finding, name) for name in ("rule", "title", "evidence", "remedy")},
    **{f"{name}_ratio": Field(Finding, name) for name in ("gain_low", "gain_high")},
}
FILES: Final = (
    File(
        FILE,
        "a cause of lost time, with evidence, remedy and what could be won",
        {**COLUMNS, "layers": "their paths, separated by semicolons"},
    ),
)


def files(document: Document) -> dict[str, Table]:
    """A row a finding, what could win most first, its layers separated by ``;``; nothing where there is none."""
    part = document.part(Findings)
    if part is None or not part.rows:
        return {}
    columns = table_of(part.rows, COLUMNS).columns
    return {FILE: Table({**columns, "layers": [";".join(one.layers) for one in part.rows]})}
