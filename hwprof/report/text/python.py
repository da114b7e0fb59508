"""The section on Python's functions and lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from hwprof.report.document.python import Python, PythonFunction, PythonLine
from hwprof.report.text import figures
from hwprof.report.text.figures import Glyphs
from hwprof.report.text.grid import Column
from hwprof.report.text.page import Page
from hwprof.report.text.slower import took

WORTH_SAYING: Final = 0.05

ENDS: Final = "Try: --pyspy-passes trace, where the sampler tells"

NO_LINE: Final = "(not known)"
"""No look told the line, or all of the stack is the framework's own."""


def show(page: Page) -> None:
    """The functions with the most self time, of all stages, and the lines with the most processor time."""
    part = page.part(Python)
    if part is None:
        return
    top = page.document.hottest.top
    known = looked_at_often(part)
    rows = known[:top]
    title = f"Python functions by self time, pass {part.pass_}"
    if not rows:
        page.title(title)
        page.notes([f"none was met {part.few_looks} times. Try: a higher --pyspy-rate"])
    else:
        page.table(function_columns(rows, page), f"{title} ({len(rows)} of {len(known)})")
        page.notes(notes_on_functions(part, "self", page.glyphs))
    _lines(part, top, page)


def looked_at_often(part: Python, *, inclusive: bool = False) -> list[PythonFunction]:
    """Those functions, not the profiler's, whose self (or inclusive) time is not left to chance."""
    looks = _looks(part.functions, inclusive=inclusive)
    often = [row for row, met in zip(part.functions, looks, strict=True) if met is None or met >= part.few_looks]
    return [row for row in often if row.origin != "profiler"]


def _looks(rows: Sequence[PythonFunction], *, inclusive: bool) -> list[float | None]:
    """Those of the time that the table is ordered by."""
    return [row.inclusive_looks if inclusive else row.looks for row in rows]


def function_columns(rows: Sequence[PythonFunction], page: Page, *, inclusive: bool = False) -> list[Column]:
    """A row a function, thread and stage; what they are ordered by is always shown."""
    glyphs = page.glyphs
    looks = _looks(rows, inclusive=inclusive)
    return [
        Column("function", [row.function for row in rows], right=False, least=24),
        Column("file", [name_of(row.file) for row in rows], 2, right=False, least=12),
        Column("stage", [row.stage for row in rows], right=False, least=9),
        Column("thread", [row.thread for row in rows], 4 if inclusive else 1, right=False),
        Column("self ms", [figures.milliseconds(row.self_ns) for row in rows]),
        Column("share", [_share(row, glyphs, inclusive=inclusive) for row in rows]),
        Column("", figures.bars([row.share for row in rows], glyphs), 5, right=False),
        Column("inclusive ms", [figures.milliseconds(row.inclusive_ns) for row in rows], 0 if inclusive else 3),
        Column("looks", ["" if met is None else f"{met:,.0f}" for met in looks], 4),
    ]


def _share(row: PythonFunction, glyphs: Glyphs, *, inclusive: bool) -> str:
    """Of self time; beside inclusive time, which rows are chosen by, without its interval."""
    if inclusive:
        return figures.percent(row.share, glyphs)
    return figures.share(row.share, row.share_low, row.share_high, glyphs)


def notes_on_functions(part: Python, order: str, glyphs: Glyphs) -> list[str]:
    """How their times came about; ``order``: ``self`` or ``inclusive``, by which they are ordered."""
    notes = ["self: elapsed time, waiting too, with the native code that it calls; share: of the stage's time"]
    if order == "self" and any(row.share_low is not None for row in part.functions):
        notes[0] += f", {glyphs.plus_minus} half the 95% interval"
    if part.rate_hz:
        notes.append(f"looks: about, {order} time x {part.rate_hz:g} Hz; not listed: fewer than {part.few_looks}")
    if order == "inclusive" and (part.framework_share or 0.0) >= WORTH_SAYING:
        notes.append(f"not listed: torch's functions, {part.framework_share:.0%} of the self time: hwprof report --all")
    if not part.ends_known and any(row.thread == "other" for row in part.functions):
        notes.append(f"other threads' ends are not known: the last function of one that ended lasts too long. {ENDS}")
    return notes


def notes_on_looks(part: Python, page: Page) -> list[str]:
    """How exact their times are, and what the pass with all that looks in it costs."""
    said = []
    if part.clock_error_ns is not None:
        exact = figures.milliseconds(part.clock_error_ns)
        said.append(f"times of looks: {page.glyphs.plus_minus}{exact} ms")
    if part.slower is not None:
        said.append(f"iterations of pass {part.pass_}, with all that looks in it: {took(part.slower, page.glyphs)}")
    return ["; ".join(said)] if said else []


def notes_on_lines(part: Python) -> list[str]:
    """How they are found, or why they are not."""
    if part.missing_lines is not None:
        remedy = f". Try: {part.missing_lines.remedy}" if part.missing_lines.remedy else ""
        return [f"no CPU time by Python line: {part.missing_lines.reason}{remedy}"]
    waiting = f" ({part.waiting_share:.1%})" if part.waiting_share is not None else ""
    notes = [f"line: the innermost of the pipeline; CPU time: of all threads, no waiting{waiting}"]
    if part.rate_hz:
        apart = figures.milliseconds(1e9 / part.rate_hz)
        notes.append(f"looks are {apart} ms apart: lines in turn that take less may have one another's kernels")
    unknown = next((row.share for row in part.lines if row.file is None), None)
    if unknown is not None and unknown >= WORTH_SAYING:
        notes.append(f"{NO_LINE}: {unknown:.0%} of the CPU time may be any line's, beyond what their intervals say")
    return [*notes, f"not listed: fewer than {part.few_samples} samples"]


def place(row: PythonLine) -> str:
    """``net.py:12``"""
    return NO_LINE if row.file is None else f"{name_of(row.file)}:{row.line}"


def name_of(file: str) -> str:
    """Its name alone: paths have their beginnings in common."""
    return PurePosixPath(file).name or file


def sampled_often(part: Python) -> list[PythonLine]:
    """Those lines that are not left to chance."""
    return [row for row in part.lines if row.samples >= part.few_samples]


def _lines(part: Python, top: int | None, page: Page) -> None:
    known = sampled_often(part)
    rows = known[:top]
    if not rows:
        page.notes(notes_on_lines(part)[:1] if part.missing_lines is not None else [])
        return
    glyphs = page.glyphs
    hottest = [row.kernels[0] if row.kernels else None for row in rows]
    page.table(
        [
            Column("line", [place(row) for row in rows], right=False, least=16),
            Column("function", [row.function or "" for row in rows], 1, right=False, least=16),
            Column("share", [figures.share(row.share, row.share_low, row.share_high, glyphs) for row in rows]),
            Column("", figures.bars([row.share for row in rows], glyphs), 5, right=False),
            Column("CPU ms", [figures.milliseconds(row.cpu_ns) for row in rows]),
            Column("samples", [f"{row.samples:,}" for row in rows], 4),
            Column("largest kernel", [one.kernel if one else "" for one in hottest], 2, right=False, least=20, most=48),
            Column("of it", [figures.percent(one.share_of_line, glyphs) if one else "" for one in hottest], 3),
        ],
        f"Python lines by CPU time, pass {part.pass_} ({len(rows)} of {len(known)})",
    )
    page.notes([*notes_on_lines(part), "kernels by line: hwprof report --python"])
