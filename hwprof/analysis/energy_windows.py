"""The energy of windows of time, from a cumulative meter that is refreshed, and read, now and then: with its error.

A reading is as old as the meter's last refresh: half an interval R on average, by which its time is put back. An edge
between two readings, T apart (those around this edge, and never less than the median: a meter may pause), is
interpolated. What that leaves:

- by chance, at each edge, up to (R² + T²)/12 · P² in variance (a uniform distribution over R, and over T), summed over
  the edges;
- one-sidedly, where the power steps at an edge by D: interpolation gives each side a part of the other's. On average
  over where the edge lies that is D · T/6 of energy, and D · R/8 for the refresh, at both edges of each window; and
  D · L where the times of the readings may be off by L.

Where one window follows another of the same kind at once, what interpolation gives the one too much the other lacks:
these two edges do not count, but the pause between them, over which the power may be another by D.

The error is half of the 95% interval: sqrt(1.96² · P² · Σ(R² + T²)/12 + (D · Σ(R/8 + T/6 + L))²), over all edges.
``power_readings`` has what changes where a meter's readings are of power, not of energy (``of_power``).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import polars as pl

from hwprof.analysis import power_readings
from hwprof.analysis.intervals import NORMAL_95
from hwprof.analysis.readings import covered

REFRESH_NS: Final = 1_000_000
"""How often energy meters refresh (RAPL: about every millisecond), where nobody has looked."""

SOON: Final = 1 / 3
"""Of the distance of two readings: what two edges may be off by, one-sidedly."""

GAPS: Final = ("begin_gap_ns", "end_gap_ns")
"""Of ``readings.covered``."""

ROUNDING: Final = 1e-9

FIGURES: Final[dict[str, pl.DataType]] = {
    "windows": pl.Int64(),
    "seconds": pl.Float64(),
    "joules": pl.Float64(),
    "joules_error": pl.Float64(),
    "joules_per_iteration": pl.Float64(),
    "watts": pl.Float64(),
    "watts_error": pl.Float64(),
}


ABOVE_IDLE: Final[dict[str, pl.DataType]] = {"joules_above_idle": pl.Float64(), "above_idle_error": pl.Float64()}


class Meter(NamedTuple):
    """One energy counter over time."""

    zone: str
    readings: pl.DataFrame  # ``time_ns``, put back by the mean age of a reading, and ``value``: joules
    refresh_ns: float
    period_ns: float  # between two readings, the median
    late_ns: float = 0.0  # by how much their times may be off
    of_power: bool = False  # the readings were watts at moments

    @classmethod
    def of(
        cls,
        zone: str,
        readings: pl.DataFrame,
        refresh_ns: float = REFRESH_NS,
        late_ns: float = 0.0,
        *,
        of_power: bool = False,
    ) -> Meter | None:
        """From rows of ``series``, by time. None: fewer than two readings."""
        if readings.height < 2:
            return None
        put_back = readings.with_columns(pl.col("time_ns") - round(refresh_ns / 2))
        period_ns = readings.select(pl.col("time_ns").diff().median()).item()
        return cls(zone, put_back, refresh_ns, float(period_ns), late_ns, of_power)

    def energies(self, windows: pl.DataFrame, keys: list[str], step_watts: pl.Expr | None = None) -> pl.DataFrame:
        """Of the ``windows`` (``iteration``, ``begin_ns``, ``end_ns`` and ``keys``) that the readings cover, by
        ``keys``, in the order of the first of each: ``FIGURES``. ``step_watts``: by how much the power changes
        at their edges, of ``watts``; without it the error has no one-sided part."""
        sums = self._edges(covered(self.readings, windows.sort("begin_ns", maintain_order=True)), keys)
        found = sums.group_by(keys, maintain_order=True).agg(
            pl.len().alias("windows"),
            pl.col("seconds", "between", "edges_j", "edges", "gaps_s", "gaps_s2", "pauses_s").sum(),
            joules=pl.col("amount").sum(),
            joules_per_iteration=pl.col("amount").sum() / pl.col("iteration").n_unique(),
        )
        watts = pl.when(pl.col("seconds") > 0).then(pl.col("joules") / pl.col("seconds"))
        edges, refresh_s = pl.col("edges"), self.refresh_ns / 1e9
        at_edges = watts**2 * (edges * refresh_s**2 + pl.col("gaps_s2")) / 12
        by_chance = NORMAL_95**2 * (at_edges + pl.col("between"))
        step = step_watts.fill_null(0) if step_watts is not None else pl.lit(0.0)
        at_each = edges * (refresh_s / 8 + self.late_ns / 1e9) + pl.col("gaps_s") / 6 + pl.col("pauses_s")
        one_sided = step * at_each + pl.col("edges_j")
        error = (by_chance + one_sided**2).sqrt()
        return (
            found.with_columns(watts=watts)
            .with_columns(joules_error=error)
            .with_columns(watts_error=pl.col("joules_error") / pl.col("seconds"))
            .select(*keys, *FIGURES)
            .cast(pl.Schema({**dict.fromkeys(keys, pl.String()), **FIGURES}))
        )

    def _edges(self, inside: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
        """What the edges of each window may be off by: how many ``edges`` count, ``gaps_s`` between the readings around
        them and ``gaps_s2``, their squares, ``edges_j`` and ``between`` of ``power_readings``. Where the next window of
        the same keys follows sooner than a meter can tell, what one is given too much the other lacks: neither of the
        two edges counts, but the pause between them (``pauses_s``)."""
        of_power: dict[str, Any] = dict.fromkeys(("between", "begin_j", "end_j"), pl.lit(0.0))
        if self.of_power:
            of_power = power_readings.errors(self.readings, inside, self.late_ns)
        begin_s, end_s = (pl.max_horizontal(edge, pl.lit(self.period_ns)) / 1e9 for edge in GAPS)
        pause_s = (pl.col("begin_ns").shift(-1).over(keys) - pl.col("end_ns")) / 1e9
        inside = inside.with_columns(**of_power, begin_s=begin_s, end_s=end_s, pause_s=pause_s)
        joined = (pl.col("pause_s") >= 0) & (pl.col("pause_s") < pl.col("end_s") * SOON)
        inside = inside.with_columns(ends=~joined.fill_null(value=False))
        begins = pl.col("ends").shift(1, fill_value=True).over(keys)
        counted = {"begin": begins, "end": pl.col("ends")}
        return inside.with_columns(
            edges=sum((counts.cast(pl.Int64) for counts in counted.values()), pl.lit(0)),
            gaps_s=sum((counts * pl.col(f"{edge}_s") for edge, counts in counted.items()), pl.lit(0.0)),
            gaps_s2=sum((counts * pl.col(f"{edge}_s") ** 2 for edge, counts in counted.items()), pl.lit(0.0)),
            edges_j=sum((counts * pl.col(f"{edge}_j") for edge, counts in counted.items()), pl.lit(0.0)),
            pauses_s=pl.when(~pl.col("ends")).then("pause_s").otherwise(0.0),
        )

    def watts(self, windows: pl.DataFrame) -> tuple[float, float] | None:
        """The mean power in all of them, and its error, which has no one-sided part where it is the same around them;
        None where none is covered."""
        found = self.energies(windows.with_columns(all=pl.lit(""), iteration=pl.lit(0)), ["all"])
        row = next(found.select("watts", "watts_error").iter_rows(), None)
        return None if row is None or row[0] is None else row


def above_idle(idle: tuple[float, float] | None) -> dict[str, pl.Expr]:
    """Of ``FIGURES``: the joules less those of as many seconds at the ``idle`` power (W, with its error), and the error
    of both; what arithmetic in doubles leaves of none is 0. The columns of ``ABOVE_IDLE``."""
    watts, error = (pl.lit(value, pl.Float64) for value in (idle or (None, None)))
    more = pl.col("joules") - watts * pl.col("seconds")
    is_more = more.abs() > ROUNDING * pl.col("joules").abs()
    return {
        "joules_above_idle": pl.when(is_more).then(more).when(~is_more).then(0.0),
        "above_idle_error": (pl.col("joules_error") ** 2 + (error * pl.col("seconds")) ** 2).sqrt(),
    }
