"""How much of each pass a trace shows: whole iterations, from the first on, as many as the UI opens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from hwprof.analysis.disturbed import is_disturbed
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import IterationRecord, PassRecord
from hwprof.trace.limits import ANNOTATED, COUNTS_A_SLICE
from hwprof.trace.tracks import OPERATOR

BY_TIME: Final = {"primitives": "begin_ns", "python_frames": "begin_ns", "samples": "time_ns"}
"""Tables beside ``spans`` of which a row becomes a slice, and when that begins."""

ROWS: Final = pl.when(pl.col("kind") == OPERATOR).then(1).otherwise(ANNOTATED)
"""Slices that a span counts for: what is limited is the size, and an operator's slice is the smallest."""


class Shown(NamedTuple):
    """Of a pass."""

    iterations: int
    of: int
    until_ns: int | None  # of what begins then nothing is shown; None: all is


def shown(run: RunDirectory, records: Sequence[PassRecord], limit: int) -> dict[str, Shown]:
    """By pass. ``limit``: slices of all passes together; those that have less than their part of it leave the rest to
    the others. What comes until the iteration that the UI is opened at is always shown."""
    rows = {record.name: _by_iteration(run, record) for record in records}
    totals = {name: int(found["rows"].sum()) for name, found in rows.items()}
    parts = share_out(totals, limit)
    opened = {record.name: opened_at(record) for record in records}
    least = {name: one.index + 1 if one is not None else 1 for name, one in opened.items()}
    return {name: _within(found, parts[name], least[name]) for name, found in rows.items()}


def opened_at(record: PassRecord) -> IterationRecord | None:
    """The iteration of a pass that the UI shows at first: the first undisturbed one; None where none is measured."""
    measured = [iteration for iteration in record.iterations if not iteration.warmup]
    calm = [iteration for iteration in measured if not is_disturbed(iteration)]
    return next(iter(calm or measured), None)


def share_out(wanted: Mapping[str, int], limit: int) -> dict[str, int]:
    """``limit`` in equal parts, but for those who want less than theirs: they get that, and the others share the rest.
    They sum to ``limit`` or less."""
    left, parts = limit, dict[str, int]()
    for place, (name, rows) in enumerate(sorted(wanted.items(), key=lambda item: item[1])):
        parts[name] = min(rows, left // (len(wanted) - place))
        left -= parts[name]
    return parts


def _within(iterations: pl.DataFrame, rows: int, least: int) -> Shown:
    """``iterations``: as ``_by_iteration``."""
    fitting = int((iterations["rows"].cum_sum() <= rows).sum())
    kept = min(max(fitting, least), iterations.height)
    until_ns = int(iterations["begin_ns"][kept]) if kept < iterations.height else None
    return Shown(kept, iterations.height, until_ns)


def _by_iteration(run: RunDirectory, record: PassRecord) -> pl.DataFrame:
    """``begin_ns`` of each iteration, in order, and the ``rows`` that begin from then on, before the next one, each for
    as many slices as take as much; those before the first one are the first one's."""
    spans = run.scan_pass("spans", record.name)
    of_iterations = spans.filter(pl.col("kind") == "iteration").select("begin_ns").collect(engine="streaming")
    begins = of_iterations["begin_ns"].sort().to_numpy()
    rows = _sum(spans.select("begin_ns", rows=ROWS), begins)
    counts = run.scan_pass("counts", record.name).join(spans.select("span", "begin_ns"), on="span")
    rows += _sum(counts.select("begin_ns", rows=1), begins) // COUNTS_A_SLICE
    for table, time in BY_TIME.items():
        rows += _sum(run.scan_pass(table, record.name).select(begin_ns=time, rows=1), begins)
    return pl.DataFrame({"begin_ns": begins, "rows": rows}, schema={"begin_ns": pl.Int64, "rows": pl.Int64})


def _sum(table: pl.LazyFrame, begins: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Of ``rows``, by the iteration that ``begin_ns`` lies in."""
    found = table.collect(engine="streaming")
    numbers = np.clip(np.searchsorted(begins, found["begin_ns"].to_numpy(), side="right") - 1, 0, None)
    return np.bincount(numbers, found["rows"].to_numpy(), minlength=len(begins))[: len(begins)].astype(np.int64)
