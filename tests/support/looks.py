"""Rows of ``python_frames``, by hand and from the stacks that somebody met, and in a synthetic run."""

from __future__ import annotations

from typing import TypeAlias

import polars as pl

from hwprof.run.details import PythonStacksDetail, as_json
from hwprof.run.directory import RunDirectory, write_table
from hwprof.run.manifest import CollectorRecord
from hwprof.run.schema import TABLES
from tests.support.synthetic_samples import MAIN

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


def add(run: RunDirectory, rows: list[tuple[int, int, str, str, int, int, int]], since_ns: int) -> None:
    """(thread, depth, function, file, line, begin, end) in us from ``since_ns`` on, as met in the pass ``trace``; what
    lies in ``/lib/torch`` is the framework's, in ``/lib/hwprof`` the profiler's."""
    names = ["tid", "depth", "function", "file", "line", "begin_ns", "end_ns"]
    table = pl.DataFrame(rows, schema=names, orient="row").with_columns(
        pl.col("begin_ns", "end_ns") * 1000 + since_ns, pid=pl.lit(MAIN), **{"pass": pl.lit("trace")}
    )
    write_table(run.path / "python_frames.parquet", "python_frames", table)
    detail = PythonStacksDetail(
        rate_hz=2e5,  # so looks are 5 us late
        frames=table.height,
        profiler_paths=["/lib/hwprof"],
        framework_paths=["/lib/torch"],
    )
    run.manifest.passes[1].collectors.append(CollectorRecord(name="pyspy", state="ran", detail=as_json(detail)))
    run.save_manifest()
