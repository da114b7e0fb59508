"""Python's functions in the trace: slices of each thread, callers above those that they call."""

from __future__ import annotations

import numpy as np
import polars as pl

from hwprof.analysis.python_functions import calls
from hwprof.analysis.python_stacks import looks_of
from hwprof.run.manifest import PassRecord
from hwprof.trace.nesting import END_OF_TIME
from hwprof.trace.slices import write_columns
from hwprof.trace.tracks import PYTHON, Tracks

TEXTS = ("place",)
"""Columns that become annotations of a slice: ``/src/net.py:12``, with the line that it had reached at first."""


def write_python_functions(frames: pl.DataFrame, record: PassRecord, tracks: Tracks) -> int:
    """Writes a pass's rows of ``python_frames``, as ``python_stacks.of_pipeline`` leaves them, and returns how many
    slices these are."""
    if frames.is_empty():
        return 0
    found = calls(frames, looks_of(record)).select(
        "tid",
        "depth",
        "begin_ns",
        "end_ns",
        path="function",
        place=pl.format("{}:{}", "file", "line"),
        kind=pl.lit(PYTHON),
        span=pl.int_range(pl.len(), dtype=pl.Int64),
    )
    for (tid,), rows in found.partition_by("tid", as_dict=True, maintain_order=True).items():
        for placed in tracks.slices(PYTHON, int(tid)).place(rows, END_OF_TIME):
            write_columns(placed, rows, np.empty(0, np.uint64), TEXTS)
    return found.height
