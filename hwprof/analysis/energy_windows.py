"""The energy of windows of time, from a cumulative meter that is refreshed, and read, now and then: with its error.

A reading is as old as the meter's last refresh: half an interval R on average, by which its time is put back. An edge
between two readings, T apart, is interpolated. What that leaves:

- by chance, at each edge, up to (R² + T²)/12 · P² in variance (a uniform distribution over R, and over T); over n
  windows 2n times that;
- one-sidedly, where the power steps at an edge by D: interpolation gives each side a part of the other's. On average
  over where the edge lies that is D · T/6 of energy, and D · R/8 for the refresh, at both edges of each window; and
  D · L where the times of the readings may be off by L.

The error is half of the 95% interval: sqrt(1.96² · 2n · P² · (R² + T²)/12 + (2n · D · (R/8 + T/6 + L))²).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import polars as pl

from hwprof.analysis.intervals import NORMAL_95
from hwprof.analysis.readings import covered

REFRESH_NS: Final = 1_000_000
"""How often energy meters refresh (RAPL: about every millisecond), where nobody has looked."""

FIGURES: Final[dict[str, pl.DataType]] = {
    "windows": pl.Int64(),
    "seconds": pl.Float64(),
    "joules": pl.Float64(),
    "joules_error": pl.Float64(),
    "joules_per_iteration": pl.Float64(),
    "watts": pl.Float64(),
    "watts_error": pl.Float64(),
}


class Meter(NamedTuple):
    """One energy counter over time."""

    zone: str
    readings: pl.DataFrame  # ``time_ns``, put back by the mean age of a reading, and ``value``: joules
    refresh_ns: float
    period_ns: float  # between two readings
    late_ns: float = 0.0  # by how much their times may be off

    @classmethod
    def of(
        cls, zone: str, readings: pl.DataFrame, refresh_ns: float = REFRESH_NS, late_ns: float = 0.0
    ) -> Meter | None:
        """From rows of ``series``, by time. None: fewer than two readings."""
        if readings.height < 2:
            return None
        put_back = readings.with_columns(pl.col("time_ns") - round(refresh_ns / 2))
        period_ns = readings.select(pl.col("time_ns").diff().median()).item()
        return cls(zone, put_back, refresh_ns, float(period_ns), late_ns)

    def energies(self, windows: pl.DataFrame, keys: list[str], step_watts: pl.Expr | None = None) -> pl.DataFrame:
        """Of the ``windows`` (``iteration``, ``begin_ns``, ``end_ns`` and ``keys``) that the readings cover, by
        ``keys``, in the order of the first of each: ``FIGURES``. ``step_watts``: by how much the power changes
        at their edges, of ``watts``; without it the error has no one-sided part."""
        sums = covered(self.readings, windows).group_by(keys, maintain_order=True)
        found = sums.agg(
            pl.len().alias("windows"),
            pl.col("seconds").sum(),
            joules=pl.col("amount").sum(),
            joules_per_iteration=pl.col("amount").sum() / pl.col("iteration").n_unique(),
        )
        watts = pl.when(pl.col("seconds") > 0).then(pl.col("joules") / pl.col("seconds"))
        edges, refresh_s, period_s = 2 * pl.col("windows"), self.refresh_ns / 1e9, self.period_ns / 1e9
        by_chance = NORMAL_95**2 * edges * watts**2 * (refresh_s**2 + period_s**2) / 12
        step = step_watts.fill_null(0) if step_watts is not None else pl.lit(0.0)
        one_sided = edges * step * (refresh_s / 8 + period_s / 6 + self.late_ns / 1e9)
        error = (by_chance + one_sided**2).sqrt()
        return (
            found.with_columns(watts=watts)
            .with_columns(joules_error=error)
            .with_columns(watts_error=pl.col("joules_error") / pl.col("seconds"))
            .select(*keys, *FIGURES)
            .cast(pl.Schema({**dict.fromkeys(keys, pl.String()), **FIGURES}))
        )

    def watts(self, windows: pl.DataFrame) -> float | None:
        """The mean power in all of them; None where none is covered."""
        used = covered(self.readings, windows)
        seconds = float(used["seconds"].sum())
        return float(used["amount"].sum()) / seconds if seconds else None
