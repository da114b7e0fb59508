"""``python_line_costs.csv``: what each line of Python costs."""

from __future__ import annotations

from typing import Final

from hwprof.report.csv.table import File, Table, of_struct, table_of
from hwprof.report.document.document import Document
from hwprof.report.document.lines import LineCost, Lines

HEADERS: Final = {
    **{name: f"{name}_ratio" for name in ("share", "share_low", "share_high", "python_share", "native_share")},
    **{name: f"{name}_ratio" for name in ("system_share", "core_utilization", "python_allocated_share")},
}
COLUMNS: Final = of_struct(LineCost, HEADERS)
FILES: Final = (File("python_line_costs.csv", "a line of Python with time, memory and copying (Scalene)", COLUMNS),)


def files(document: Document) -> dict[str, Table]:
    """A row a line."""
    part = document.part(Lines)
    if part is None:
        return {}
    table = table_of(part.rows, COLUMNS)
    return {"python_line_costs.csv": Table({**table.columns, "modules": [" ".join(row.modules) for row in part.rows]})}
