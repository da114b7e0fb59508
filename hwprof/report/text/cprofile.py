"""The section on calls of Python's functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from hwprof.report.document.cprofile import CProfile, PythonCalls
from hwprof.report.text import figures
from hwprof.report.text.grid import Column
from hwprof.report.text.page import Page
from hwprof.report.text.python import name_of
from hwprof.report.text.slower import took

BUILTIN: Final = re.compile(r"<(?:built-in (?:method|function) )?(?:builtins\.)?(?P<name>[^ >]+)>")
METHOD: Final = re.compile(r"<method '(?P<name>[^']+)' of '(?:[^']+\.)?(?P<type>[^'.]+)' objects>")
"""What cProfile calls functions that are no Python: their kind stands before their name, and is all that a narrow
column would show."""


def show(page: Page) -> None:
    """The functions with the most self time; nothing where nobody counted."""
    part = page.part(CProfile)
    if part is None:
        return
    known = part.listed()
    rows = known[: page.document.hottest.top]
    table(rows, page, f"Python calls by self time, pass {part.pass_} ({len(rows)} of {len(known):,})")
    page.notes([*notes(part, page), "by stage: hwprof report --cprofile"])


def table(rows: Sequence[PythonCalls], page: Page, title: str) -> None:
    """A row a function and stage."""
    if not rows:
        page.title(title)
        return
    glyphs = page.glyphs
    page.table(
        [
            Column("function", [_name(row) for row in rows], right=False, least=24),
            Column("file", [_place(row) for row in rows], 2, right=False, least=12),
            Column("stage", [row.stage for row in rows], right=False, least=9),
            Column("calls", [_calls(row) for row in rows]),
            Column("self ms", [figures.milliseconds(row.self_ns) for row in rows]),
            Column("share", [figures.percent(row.share, glyphs) for row in rows], 1),
            Column("cumulative ms", [figures.milliseconds(row.cumulative_ns) for row in rows], 1),
        ],
        title,
    )


def notes(part: CProfile, page: Page) -> list[str]:
    """What the times are of."""
    cost = f"; {took(part.slower, page.glyphs)}" if part.slower is not None else ""
    of = figures.plural(part.iterations, "iteration")
    calls = "calls are missing" if part.notes else "calls are exact"
    return [
        *part.notes,
        f"cProfile, {of} of its own{cost}: {calls}, times are longer, small functions' most",
        "of the thread that calls the model; calls: primitive/all where a function calls itself",
    ]


def _name(row: PythonCalls) -> str:
    """``torch.conv2d``, ``TensorBase.view``."""
    if row.origin != "builtin":
        return row.function
    if found := METHOD.fullmatch(row.function):
        return f"{found['type']}.{found['name']}"
    found = BUILTIN.fullmatch(row.function)
    return found["name"] if found else row.function


def _calls(row: PythonCalls) -> str:
    every = f"{row.calls:,.6g}"
    return every if row.calls == row.primitive_calls else f"{row.primitive_calls:,.6g}/{every}"


def _place(row: PythonCalls) -> str:
    return "" if row.origin == "builtin" else f"{name_of(row.file)}:{row.line}"
