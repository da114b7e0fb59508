"""Energy counters that are read over time, whoever gives them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import polars as pl

from hwprof.run.schema import conform


class Meter(Protocol):
    """One energy counter of the machine."""

    @property
    def name(self) -> str:
        """As powercap has it: package-0, package-0/core, package-0/dram, psys."""

    def open(self) -> None:
        """Makes it ready. Raises ``OSError``."""

    def joules(self) -> float:
        """Since the first reading after ``open``. Raises ``OSError`` and ``ValueError``."""

    def close(self) -> None:
        """Gives back what ``open`` took; may be called without it."""


LEAST_CHANGES: Final = 4
"""That a meter must have been seen to make before its pace is believed."""


STILL_S: Final = 0.1
"""A hundred refreshes of RAPL's counters."""


@dataclass(frozen=True)
class Pace:
    """How often meters change, and what it costs to read them."""

    refresh_ns: dict[str, float]  # of a meter that was seen to change
    reading_cpu_ns: float  # processor time of reading all of them once


@dataclass
class EnergyLog:
    """The samples of all meters: times, and joules since the first of them."""

    meters: Sequence[Meter]
    clock_ns: Callable[[], int] = time.monotonic_ns
    times_ns: dict[str, list[int]] = field(default_factory=dict)
    joules: dict[str, list[float]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    _first: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for meter in self.meters:
            self.times_ns[meter.name] = []
            self.joules[meter.name] = []

    def sample(self) -> bool:
        """Reads every meter once, each with its own time; one that cannot be read is given up. Whether any is left."""
        for meter in self.meters:
            if meter.name in self.failures:
                continue
            try:
                joules = meter.joules()
            except (OSError, ValueError) as error:
                self.failures[meter.name] = str(error)
                continue
            self.times_ns[meter.name].append(self.clock_ns())
            self.joules[meter.name].append(joules - self._first.setdefault(meter.name, joules))
        return len(self.failures) < len(self.meters)

    def watch(self, seconds: float) -> Pace:
        """Reads all meters again and again for so long: how often each changes, and what a reading costs. Nothing of it
        is kept; one that cannot be read is left to ``sample``."""
        changes: dict[str, list[int]] = {meter.name: [] for meter in self.meters}
        last: dict[str, float] = {}
        begin_ns, begin_cpu_ns, readings = self.clock_ns(), time.thread_time_ns(), 0
        while (now_ns := self.clock_ns()) - begin_ns < seconds * 1e9:
            readings += 1
            for meter in self.meters:
                try:
                    joules = meter.joules()
                except (OSError, ValueError):
                    continue
                if joules != last.setdefault(meter.name, joules):
                    changes[meter.name].append(now_ns)
                    last[meter.name] = joules
        taken_ns = time.thread_time_ns() - begin_cpu_ns
        refreshes = {name: _mean_step(times) for name, times in changes.items() if len(times) >= LEAST_CHANGES}
        return Pace(refreshes, taken_ns / max(readings, 1))

    def still(self) -> list[str]:
        """The meters that showed the same joules from the first sample to the last, ``STILL_S`` later or more: no
        machine that runs takes nothing, so nothing was measured."""
        return [
            name
            for name, times_ns in self.times_ns.items()
            if times_ns and times_ns[-1] - times_ns[0] >= STILL_S * 1e9 and not any(self.joules[name])
        ]

    def series(self) -> pl.DataFrame:
        """Rows of ``series``, by time: ``energy/<zone>`` in joules, from 0; none of meters that stood still."""
        still = self.still()
        frames = [
            pl.DataFrame(
                {"time_ns": self.times_ns[meter.name], "value": self.joules[meter.name]},
                schema={"time_ns": pl.Int64, "value": pl.Float64},
            ).with_columns(name=pl.lit(f"energy/{meter.name}"), unit=pl.lit("J"))
            for meter in self.meters
            if meter.name not in still
        ]
        if not frames:
            return conform("series", pl.DataFrame())
        return conform("series", pl.concat(frames).sort("time_ns", maintain_order=True))


def _mean_step(times_ns: Sequence[int]) -> float:
    """Between two changes; the first one seen may have been of any age before."""
    return (times_ns[-1] - times_ns[0]) / (len(times_ns) - 1)
