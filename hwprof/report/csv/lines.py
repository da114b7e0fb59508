"""``python_line_costs.csv``: what each line of Python costs."""

from __future__ import annotations

from typing import Final

from hwprof.report.csv.table import Table, columns_of, fields_of
from hwprof.report.document.document import Document
from hwprof.report.document.lines import LineCost, Lines

HEADERS: Final = {
    **{name: f"{name}_ratio" for name in ("share", "share_low", "share_high", "python_share", "native_share")},
    **{name: f"{name}_ratio" for name in ("system_share", "core_utilization", "python_allocated_share")},
}


def files(document: Document) -> dict[str, Table]:
    """A row a line."""
    part = document.part(Lines)
    if part is None:
        return {}
    table = columns_of(part.rows, fields_of(LineCost), HEADERS)
    return {"python_line_costs.csv": Table({**table.columns, "modules": [" ".join(row.modules) for row in part.rows]})}
