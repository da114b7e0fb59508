"""What ``hwprof report --operators`` prints: modules by class, their operators, and what these call."""

from __future__ import annotations

from rich.text import Text

from hwprof.report.document.hot_operators import LEAST_SHARE, HotOperators
from hwprof.report.document.operators import OperatorNode
from hwprof.report.text import figures
from hwprof.report.text.grid import Column
from hwprof.report.text.page import Page
from hwprof.report.text.raw_files import where

INDENT = "  "


def show(found: HotOperators, page: Page) -> None:
    """The tree as a table; what is deeper is indented."""
    page.console.print(Text(f"run {found.run}, pass trace"))
    rows, glyphs = found.tree, page.glyphs
    page.table(
        [
            Column("module, operator", [INDENT * row.depth + row.name for row in rows], right=False, least=34),
            Column("calls", [figures.calls(row.calls, glyphs) for row in rows]),
            Column("time ms", [figures.milliseconds(row.time_ns) for row in rows]),
            Column("share", [figures.percent(row.share, glyphs) for row in rows]),
            Column("self ms", [figures.milliseconds(row.self_ns) for row in rows]),
            Column("allocated", [figures.amount(row.allocated_bytes, glyphs) for row in rows], 1),
            Column("input shapes", [_shapes(row) for row in rows], 2, right=False, least=24),
        ],
        "Modules by class, their operators, and what these call",
    )
    left_out = f"not listed: {found.left_out} with less than {LEAST_SHARE:.1%}" if found.left_out else ""
    page.notes(
        [
            "of one iteration of the trace pass, all calls with the same names above them together",
            "time, share and allocated: with all below",
            left_out,
            *where(found.files),
        ]
    )


def _shapes(row: OperatorNode) -> str:
    more = f" and {row.shapes - 1} more" if row.shapes > 1 else ""
    return f"{row.usual_shapes or ''}{more}"
