"""Rows of ``python_frames``, by hand and from the stacks that somebody met."""

from __future__ import annotations

from typing import TypeAlias

import polars as pl

from hwprof.run.schema import TABLES

Frame: TypeAlias = tuple[str, int]
"""Function and line."""

EVERY_NS = 10
"""Between two looks."""

Row: TypeAlias = tuple[int, int, str, int, int, int]
"""Thread, depth, function, line, begin, end."""


def frames(rows: list[Row], file: str = "a.py") -> pl.DataFrame:
    """All of one file and one pass."""
    known = ["tid", "depth", "function", "line", "begin_ns", "end_ns"]
    found = [dict(zip(known, row, strict=True)) | {"pass": "trace", "pid": 1, "file": file} for row in rows]
    return pl.DataFrame(found, schema=TABLES["python_frames"])


def of_looks(looks: list[list[Frame]], tid: int = 1) -> list[Row]:
    """The rows of stacks that were met at the times 0, 10, 20, …: a frame ends where it, or one around it, differs."""
    rows: list[Row] = []
    opened: list[tuple[Frame, int]] = []
    for number, stack in enumerate([*looks, []]):
        same = 0
        while same < min(len(stack), len(opened)) and opened[same][0] == stack[same]:
            same += 1
        while len(opened) > same:
            (function, line), begin = opened.pop()
            rows.append((tid, len(opened), function, line, begin, EVERY_NS * number))
        opened += [(frame, EVERY_NS * number) for frame in stack[same:]]
    return rows
