"""Cumulative readings over time: what they were at moments in between."""

from __future__ import annotations

from typing import Final

import polars as pl

WINDOW: Final = ("begin_ns", "end_ns")


def covered(readings: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
    """The ``windows`` (begin_ns, end_ns, …) that lie inside the ``readings`` (time_ns, value), with ``seconds``,
    ``amount`` (by linear interpolation at either edge), ``slack``: how much of it may be off, and ``begin_gap_ns`` and
    ``end_gap_ns``: how far the two readings around either edge are apart.

    The reading of a meter that only grows lies, at any moment, between the two around it: ``slack`` is what these are
    apart, summed over both edges, so the amount is off by at most that.
    """
    first, last = readings["time_ns"][0], readings["time_ns"][-1]
    inside = windows.filter((pl.col("begin_ns") >= first) & (pl.col("end_ns") <= last))
    begin, end = (_at(readings, inside[edge]) for edge in WINDOW)
    return inside.with_columns(
        seconds=(pl.col("end_ns") - pl.col("begin_ns")) / 1e9,
        amount=end["value"] - begin["value"],
        slack=begin["slack"] + end["slack"],
        begin_gap_ns=begin["gap_ns"],
        end_gap_ns=end["gap_ns"],
    )


def _at(readings: pl.DataFrame, moments: pl.Series) -> pl.DataFrame:
    """``value`` at moments, linear between the two readings around each, and what these two are apart: ``slack`` in
    value, ``gap_ns`` in time (0 where a moment is a reading's own)."""
    known = readings.select("time_ns", "value", at_ns="time_ns").sort("at_ns")
    wanted = pl.DataFrame({"at_ns": moments, "row": range(len(moments))}, schema_overrides={"row": pl.Int64})
    around = wanted.sort("at_ns").join_asof(known, on="at_ns", strategy="backward")
    around = around.join_asof(known, on="at_ns", strategy="forward", suffix="_after").sort("row")
    part = (pl.col("at_ns") - pl.col("time_ns")) / (pl.col("time_ns_after") - pl.col("time_ns"))
    step = pl.col("value_after") - pl.col("value")
    return around.select(
        value=pl.col("value") + step * pl.when(part.is_finite()).then(part).otherwise(0),
        slack=step.abs(),
        gap_ns=pl.col("time_ns_after") - pl.col("time_ns"),
    )
