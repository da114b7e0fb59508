"""A bench's table as HTML of one file."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Final

from hwprof.bench.rows import Row
from hwprof.bench.table import columns_of, failures, notes
from hwprof.printable import one_line
from hwprof.report.text.figures import UNICODE

PAGE: Final = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 15px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 80em; padding: 0 1em }}
.wide {{ overflow-x: auto }}
table {{ border-collapse: collapse }} th, td {{ padding: .25em .8em; border-bottom: 1px solid #ddd; text-align: left }}
td {{ white-space: nowrap }}
td.number {{ text-align: right; font-variant-numeric: tabular-nums }} svg {{ max-width: 100%; height: auto }}
</style></head><body><h1>{title}</h1>{told}
<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>
{body}
</tbody></table></div>{notes}{failed}
{drawing}
</body></html>
"""


def page(rows: Sequence[Row], title: str, told: Sequence[str], drawing: str | None) -> str:
    """With the ``drawing`` (SVG) in it."""
    measured = [row for row in rows if row.failure is None]
    columns = columns_of(measured, UNICODE) if measured else []
    head = "".join(f"<th>{html.escape(shown.header)}</th>" for shown, _ in columns)
    lines = zip(*(cells for _, cells in columns), strict=True) if columns else ()
    body = "\n".join(
        "<tr>"
        + "".join(
            f'<td class="{"number" if shown.right else "text"}">{html.escape(cell)}</td>'
            for (shown, _), cell in zip(columns, cells, strict=True)
        )
        + "</tr>"
        for cells in lines
    )
    failed = "".join(f"<li>{html.escape(line)}</li>" for line in failures(rows))
    return PAGE.format(
        title=html.escape(one_line(title)),
        told="".join(f"<p>{html.escape(one_line(line))}</p>" for line in told),
        head=head,
        body=body,
        notes="".join(f"<p>{html.escape(line)}</p>" for line in notes(rows)),
        failed=f"<h2>Not measured</h2><ul>{failed}</ul>" if failed else "",
        drawing=drawing or "",
    )
