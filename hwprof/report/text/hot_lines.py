"""What ``hwprof report --lines`` prints: lines of the pipeline by time, and by memory."""

from __future__ import annotations

from rich.text import Text

from hwprof.report.document.hot_lines import HotLines
from hwprof.report.document.lines import Lines
from hwprof.report.text import figures, lines
from hwprof.report.text.grid import Column
from hwprof.report.text.page import Page
from hwprof.report.text.raw_files import where


def show(found: HotLines, page: Page) -> None:
    """Both tables."""
    part = found.lines
    listed = [row for row in part.rows if row.samples >= lines.FEW_SAMPLES]
    page.console.print(Text(f"run {found.run}, pass {part.pass_}"))
    lines.of_time(listed, page, "Python lines of the pipeline by time")
    page.notes([*lines.notes(page.part(Lines) or part, listed, page), *where(part.files)])
    rows, glyphs = found.memory.rows, page.glyphs
    if rows:
        page.table(
            [
                Column("line", [lines.place(row) for row in rows], right=False, least=16),
                Column("function", [row.function or "" for row in rows], 1, right=False, least=16),
                Column("allocated", [figures.amount(row.allocated_bytes, glyphs) for row in rows]),
                Column("peak", [figures.amount(row.peak_bytes, glyphs) for row in rows]),
                Column("Python's", [figures.percent(row.python_allocated_share, glyphs) for row in rows], 1),
                Column("copied/s", [figures.amount(row.copy_bytes_per_s, glyphs) for row in rows], 2),
            ],
            "Python lines of the pipeline by memory",
        )
        page.notes(["bytes, by samples of 1 MiB each; peak: the most at a time; Python's: objects of Python's own"])
