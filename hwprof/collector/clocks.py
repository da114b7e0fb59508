"""Clocks: the snapshot that the trace begins with, and the one place where foreign clocks become CLOCK_MONOTONIC."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from hwprof.run.manifest import ClockRecord, ClockSnapshot

if TYPE_CHECKING:  # the command line knows clocks without polars
    import polars as pl


def snapshot() -> ClockSnapshot:
    """The kernel's clocks as close together as they can be read."""
    return min((_read_all() for _ in range(5)), key=lambda read: read[1])[0]


def _read_all() -> tuple[ClockSnapshot, int]:
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    boottime = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    raw = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
    realtime = time.clock_gettime_ns(time.CLOCK_REALTIME)
    end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return ClockSnapshot(boottime, (begin + end) // 2, raw, realtime), end - begin


def fit(name: str, marks: Sequence[tuple[int, int, int]]) -> ClockRecord:
    """The conversion of a foreign clock from marks (foreign_ns, earliest_ns, latest_ns): moments that the foreign
    clock stamped at a monotonic time between the two others.

    Of two conversions the one with the smaller error: without drift, in the middle of what the marks' brackets leave to
    it; and with offset and drift from the medians of the first and the last half of the marks. The error is the largest
    distance of a mark's bracket from its converted stamp plus half of the narrowest bracket.
    Raises ``ValueError`` without marks.
    """
    if not marks:
        raise ValueError(f"no mark of the clock {name}")
    ordered = sorted(marks)
    least, most = max(low - at for at, low, _ in ordered), min(high - at for at, _, high in ordered)
    half = max(1, len(ordered) // 2)
    first, last = _centre(ordered[:half]), _centre(ordered[-half:])
    span = last[0] - first[0]
    drift = (last[1] - first[1]) / span if span > 1_000_000_000 else 0.0
    steady = ClockRecord(name=name, offset_ns=(least + most) // 2, drift=0.0, at_ns=first[0], error_ns=0)
    drifting = ClockRecord(name=name, offset_ns=first[1], drift=drift, at_ns=first[0], error_ns=0)
    return min((_with_error(one, ordered) for one in (steady, drifting)), key=lambda one: one.error_ns)


def _with_error(record: ClockRecord, marks: Sequence[tuple[int, int, int]]) -> ClockRecord:
    outside = max(max(low - to_monotonic(record, at), to_monotonic(record, at) - high, 0) for at, low, high in marks)
    narrowest = min(high - low for _, low, high in marks)
    return msgspec.structs.replace(record, error_ns=outside + narrowest // 2)


def _centre(marks: Sequence[tuple[int, int, int]]) -> tuple[int, int]:
    """The marks' middle: (foreign_ns, offset_ns)."""
    at = int(statistics.median(mark[0] for mark in marks))
    return at, int(statistics.median((low + high) // 2 - foreign for foreign, low, high in marks))


def to_monotonic(record: ClockRecord, foreign_ns: int) -> int:
    """A foreign stamp as CLOCK_MONOTONIC nanoseconds."""
    return foreign_ns + record.offset_ns + round(record.drift * (foreign_ns - record.at_ns))


def monotonic(record: ClockRecord, foreign_ns: pl.Expr) -> pl.Expr:
    """``to_monotonic`` of a column."""
    import polars as pl

    return foreign_ns + record.offset_ns + (record.drift * (foreign_ns - record.at_ns)).round().cast(pl.Int64)
