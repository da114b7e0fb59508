"""The clock that processor time is turned into cycles by: the core's, where it was probed between iterations, else the
reference frequency, at which no core has to run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from hwprof.run.details import CoreClockDetail
from hwprof.run.manifest import PassRecord

if TYPE_CHECKING:  # sums of a kept report's rows are made without the table library
    import polars as pl

ENDS: Final = (0.05, 0.95)
"""Quantiles of the probes between which the frequency was: of the nine iterations in ten that are nothing special."""

FEWEST: Final = 3
"""Probes: of fewer nobody knows how far they lie apart."""


@dataclass(frozen=True)
class Clock:
    """``ghz``: cycles per nanosecond. ``error``: relative, half of the range of nine probes in ten; None: it was not
    probed, and is the reference frequency."""

    ghz: float
    error: float | None = None

    @property
    def error_ghz(self) -> float | None:
        """The error in cycles per nanosecond."""
        return self.error * self.ghz if self.error is not None else None

    @property
    def probed(self) -> bool:
        """Whether it is the core's own."""
        return self.error is not None


Probed: TypeAlias = tuple[float, float, float]
"""GHz: the median of some probes, and the range of nine in ten."""


def quarters(record: PassRecord, series: pl.DataFrame) -> tuple[Probed, Probed, Probed, Probed] | None:
    """The pass's probes over time; None where a quarter of them is fewer than ``FEWEST``. What is beside the number
    that divides by four is in the middle, in none."""
    ghz = frequencies(record, series)["value"]
    number = len(ghz) // 4
    if number < FEWEST:
        return None
    parts = ghz.head(number), ghz[number : 2 * number], ghz[-2 * number : -number], ghz.tail(number)
    first, second, third, last = (_probed(part) for part in parts)
    if first is None or second is None or third is None or last is None:
        return None
    return first, second, third, last


def frequencies(record: PassRecord, series: pl.DataFrame) -> pl.DataFrame:
    """The pass's probes, in the order of time: ``time_ns``, ``value`` in GHz; no rows where it was not probed.
    ``series`` are the pass's rows."""
    name = series_name(record)
    probes = series.filter(name=name) if name is not None else series.clear()
    return probes.filter(probes["value"].is_finite()).sort("time_ns").select("time_ns", "value")


def core_clock(record: PassRecord, series: pl.DataFrame) -> Clock | None:
    """The median of the pass's probes; ``series`` are its rows. None where there are too few."""
    name = series_name(record)
    if name is None:
        return None
    probes = series.filter(name=name)["value"]
    ghz = probes.filter(probes.is_finite())
    found = _probed(ghz) if len(ghz) >= FEWEST else None
    if found is None:
        return None
    middle, low, high = found
    return Clock(middle, (high - low) / 2 / middle)


def series_name(record: PassRecord) -> str | None:
    """Of the rows of ``series`` that are the pass's probes; None where nothing probed it."""
    details = (collector.detail_as(CoreClockDetail) for collector in record.collectors)
    return next((one.series for one in details if one is not None), None)


def _probed(ghz: pl.Series) -> Probed | None:
    """None where they are no frequencies."""
    middle, low, high = ghz.median(), *(ghz.quantile(end, "linear") for end in ENDS)
    if not isinstance(middle, float) or low is None or high is None or middle <= 0:
        return None
    return middle, low, high
