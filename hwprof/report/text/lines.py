"""The section on lines of Python: time in Python, native code and the kernel, memory and copying."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hwprof.report.document.lines import LineCost, Lines
from hwprof.report.text import figures
from hwprof.report.text.grid import Column
from hwprof.report.text.page import Page
from hwprof.report.text.python import name_of
from hwprof.report.text.slower import took

FEW_SAMPLES: Final = 3
"""Lines that fewer samples met are not listed: chance. Scalene counts those of the main thread alone."""

WORTH_NAMING: Final = 0.05
"""A line that is not listed, and has so much of the time."""


def show(page: Page) -> None:
    """The pipeline's lines with the most time; nothing where there was no such pass."""
    part = page.part(Lines)
    if part is None:
        return
    rows = [row for row in part.of_pipeline() if row.samples >= FEW_SAMPLES]
    shown = rows[: page.document.hottest.top]
    of_time(shown, page, f"Python lines by cost, pass {part.pass_} ({len(shown)} of {len(rows)})")
    page.notes([*notes(part, shown, page), "lines by memory: hwprof report --lines"])


def of_time(rows: Sequence[LineCost], page: Page, title: str) -> None:
    """A row a line."""
    if not rows:
        page.title(title)
        return
    glyphs = page.glyphs
    page.table(
        [
            Column("line", [place(row) for row in rows], right=False, least=16),
            Column("function", [row.function or "" for row in rows], 1, right=False, least=16),
            Column("share", [figures.share(row.share, row.share_low, row.share_high, glyphs) for row in rows]),
            Column("Python", [figures.percent(row.python_share, glyphs) for row in rows]),
            Column("native", [figures.percent(row.native_share, glyphs) for row in rows]),
            Column("system", [figures.percent(row.system_share, glyphs) for row in rows], 2),
            Column("cores", [figures.percent(row.core_utilization, glyphs) for row in rows], 2),
            Column("allocated", [figures.amount(row.allocated_bytes, glyphs) for row in rows], 3),
            Column("copied/s", [figures.amount(row.copy_bytes_per_s, glyphs) for row in rows], 3),
            Column("samples", [f"{row.samples:,}" for row in rows], 4),
        ],
        title,
    )


def notes(part: Lines, listed: Sequence[LineCost], page: Page) -> list[str]:
    """Where the figures are from; ``part``: with all rows, ``listed``: those that the table has."""
    samples = figures.plural(part.samples, "sample")
    return [
        f"{part.tool}: {samples} in {part.elapsed_s:.1f} s; what a line calls in torch is the line's",
        f"share: of that time, waiting too, split over all Python threads, idle ones too;"
        f" {page.glyphs.plus_minus} half the 95% interval, by chance alone",
        *_iterations(part, page),
        _not_listed(part, listed),
    ]


def _not_listed(part: Lines, listed: Sequence[LineCost]) -> str:
    """How much of the time the table lacks, and which line has most of it: those of pool threads have no samples."""
    rest = max(0.0, 1 - sum(row.share for row in listed))
    few = [row for row in part.of_pipeline() if row.samples < FEW_SAMPLES]
    said = f"not listed: {rest:.1%} of that time"
    if not few:
        return said
    most = max(few, key=lambda row: row.share)
    named = f", {most.share:.1%} in {place(most)}" if most.share >= WORTH_NAMING else ""
    of_few = min(1.0, sum(row.share for row in few))
    return f"{said}; lines with fewer than {FEW_SAMPLES} samples of the main thread: {of_few:.1%}{named}"


def _iterations(part: Lines, page: Page) -> list[str]:
    """Of which bytes and samples are, and what looking at lines costs."""
    if part.iterations is None:
        return []
    cost = f"; {took(part.slower, page.glyphs)} as those of the main pass" if part.slower is not None else ""
    return [f"samples and bytes: of all {figures.plural(part.iterations, 'iteration')}{cost}"]


def place(row: LineCost) -> str:
    """``net.py:12``"""
    return f"{name_of(row.file)}:{row.line}"
