"""What is not known of energy that was summed up from readings of power: watts at moments.

- Between two readings the power may have been anything. Each interval T has an error of T · S by chance; S² is the sum
  of the squared differences between its mean power and those of the two intervals beside it: for readings that are
  independent of each other, their variance.
- Where the power steps by D in the interval of an edge, each side is given the mean of both: D · T/4 on average over
  where the edge lies; and a meter that reads the mean since its last reading, which nobody knows, is half an interval
  late: D · T/2. D is the difference of the mean power in the interval after and in the one before. And D · L where the
  times of the readings may be off by L.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from hwprof.analysis.readings import WINDOW, covered

AT_AN_EDGE: Final = 1 / 4 + 1 / 2
"""Of an interval: how much of it an edge's step may be off by."""

Floats = npt.NDArray[np.float64]


def errors(readings: pl.DataFrame, windows: pl.DataFrame, late_ns: float) -> dict[str, pl.Series]:
    """Of ``windows`` (begin_ns, end_ns) that the ``readings`` (``time_ns``, ``value``: joules up to then) cover:
    ``between``, the variance by chance (J²), and ``begin_j`` and ``end_j``, what either edge may be off by, one-sidedly
    (J)."""
    times_s = readings["time_ns"].to_numpy() / 1e9
    lasted_s = np.diff(times_s)
    watts = np.diff(readings["value"].to_numpy()) / lasted_s
    gathered = readings.select("time_ns", value=pl.Series(_variance(lasted_s, watts)))
    by_chance = covered(gathered, windows.select(*WINDOW))["amount"]
    begin_j, end_j = (_at(windows[edge].to_numpy() / 1e9, times_s, watts, late_ns / 1e9) for edge in WINDOW)
    return {"between": by_chance, "begin_j": pl.Series(begin_j), "end_j": pl.Series(end_j)}


def _variance(lasted_s: Floats, watts: Floats) -> Floats:
    """That has gathered up to each reading."""
    changes = np.diff(watts) ** 2
    beside = np.concatenate([changes[:1], changes]) + np.concatenate([changes, changes[-1:]]) if changes.size else [0.0]
    return np.concatenate([[0.0], np.cumsum(lasted_s**2 * beside)])


def _at(moments_s: Floats, times_s: Floats, watts: Floats, late_s: float) -> Floats:
    """Joules that edges at ``moments_s`` may be off by."""
    last = watts.size - 1
    place = np.clip(np.searchsorted(times_s, moments_s, "right") - 1, 0, last)
    step = np.abs(watts[np.minimum(place + 1, last)] - watts[np.maximum(place - 1, 0)])
    return step * (AT_AN_EDGE * (times_s[place + 1] - times_s[place]) + late_s)
