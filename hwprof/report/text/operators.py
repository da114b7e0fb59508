"""The section on the framework's operators."""

from __future__ import annotations

from hwprof.report.document.operators import LEAST_SHARE, Operators
from hwprof.report.text import figures
from hwprof.report.text.grid import Column
from hwprof.report.text.page import Page


def show(page: Page) -> None:
    """The top operators of the trace pass."""
    part = page.part(Operators)
    if part is None:
        return
    top = page.document.hottest.top
    rows = part.rows[:top]
    glyphs = page.glyphs
    inclusive = [figures.percent(row.inclusive_ns / part.self_ns if part.self_ns else None, glyphs) for row in rows]
    page.table(
        [
            Column("operator", [row.name for row in rows], right=False, least=26),
            Column("input shapes", [row.input_shapes or "" for row in rows], right=False, least=32),
            Column("calls", [str(row.count) for row in rows]),
            Column("self", [figures.percent(row.share, glyphs) for row in rows]),
            Column("", figures.bars([row.share for row in rows], glyphs), 2, right=False),
            Column("inclusive", inclusive, 1),
            Column("self ms", [figures.milliseconds(row.self_ns) for row in rows], 4),
        ],
        f"Top operators by input shapes ({len(rows)} of {part.combinations})",
    )
    coverage = part.coverage
    within = f"; operators cover {coverage:.0%} of it" if coverage is not None else ""
    sums = f", {figures.plural(part.iterations, 'iteration')} in all" if part.iterations else ""
    own = f"self: share of all self time, pass trace{sums}{within}"
    page.notes([own, of_other_threads(part.others_share, "the inference", page)])


def of_other_threads(share: float | None, whole: str, page: Page) -> str:
    """That operators are those of the calling thread, where others had much of the CPU time."""
    if share is None or share < LEAST_SHARE:
        return ""
    had = f"other threads had {figures.percent(share, page.glyphs)} of {whole}'s CPU time"
    return f"{had}: their operators are not recorded"
