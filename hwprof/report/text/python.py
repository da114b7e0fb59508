"""The section on Python's functions."""

from __future__ import annotations

from pathlib import PurePosixPath

from hwprof.report.document.python import Python, PythonFunction
from hwprof.report.text import figures
from hwprof.report.text.grid import Column
from hwprof.report.text.page import Page


def show(page: Page) -> None:
    """Those with the most self time, of all stages."""
    part = page.part(Python)
    if part is None:
        return
    glyphs = page.glyphs
    known = [row for row in part.functions if row.looks is None or row.looks >= part.few_looks]
    rows = known[: page.document.hottest.top]
    title = f"Python functions by self time, pass {part.pass_}"
    if not rows:
        page.title(title)
        page.notes([f"none was met {part.few_looks} times. Try: --iterations, or a higher --pyspy-rate"])
        return
    page.table(
        [
            Column("function", [row.function for row in rows], right=False, least=24),
            Column("file", [_file(row) for row in rows], 2, right=False, least=12),
            Column("stage", [row.stage for row in rows], right=False, least=9),
            Column("thread", [row.thread for row in rows], 1, right=False),
            Column("self ms", [figures.milliseconds(row.self_ns) for row in rows]),
            Column("share", [figures.percent(row.share, glyphs) for row in rows]),
            Column("", figures.bars([row.share for row in rows], glyphs), 5, right=False),
            Column("inclusive ms", [figures.milliseconds(row.inclusive_ns) for row in rows], 3),
            Column("looks", ["" if row.looks is None else f"{row.looks:,.0f}" for row in rows], 4),
        ],
        f"{title} ({len(rows)} of {len(known)})",
    )
    page.notes(
        [
            "self: with the native code that it calls, per iteration; share: of the stage's time",
            f"looks at {part.rate_hz:g} Hz; not listed: fewer than {part.few_looks}" if part.rate_hz else "",
        ]
    )


def _file(row: PythonFunction) -> str:
    """Its name alone: paths have their beginnings in common."""
    return PurePosixPath(row.file).name or row.file
