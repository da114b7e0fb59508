"""From readings of the memory controllers' counters to bytes over time."""

from __future__ import annotations

import statistics
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import polars as pl

from collectors.uncore.controllers import Group, Plan
from hwprof.collector.contract import Note, NoteKind
from hwprof.run.schema import conform
from hwprof.unavailable import Unavailable

_WHOLE: Final = 0.99
"""The share of the time that a counter must have run to count as one that always ran."""

Reading = tuple[int, int, tuple[int, ...]]
"""Time enabled and time running in ns, and the values, since the counters were switched on."""


@dataclass
class _Progress:
    """A group's last reading, and what became of its counters since the first."""

    last: Reading | None = None
    enabled_ns: int = 0
    running_ns: int = 0
    backward: int = 0  # values below the last one


class TrafficLog:
    """The readings of all groups, added up to series of bytes since the first reading."""

    def __init__(
        self, plan: Plan, read: Callable[[Group], Reading], clock_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        """``read`` takes a group's reading or raises ``OSError``."""
        self._read = read
        self._clock_ns = clock_ns
        self._plan = plan
        self._progress = {group: _Progress() for group in plan.groups}
        self._bytes = dict.fromkeys(plan.series, 0.0)
        self._ended: dict[str, Unavailable] = {}  # series that end early, and why
        self._rows: list[tuple[int, str, float]] = []
        self._durations_ns: list[int] = []

    def sample(self) -> bool:
        """Reads every group once; False when no series can go on. A sum ends with the first term that it loses."""
        begin_ns = self._clock_ns()
        for group, progress in self._progress.items():
            try:
                self._advance(group, progress, self._read(group))
            except (OSError, struct.error) as error:
                self._ended |= dict.fromkeys(group.series, Unavailable(f"{group} cannot be read any more ({error})"))
        end_ns = self._clock_ns()
        self._durations_ns.append(end_ns - begin_ns)
        moment_ns = (begin_ns + end_ns) // 2
        self._rows += [(moment_ns, name, value) for name, value in self._bytes.items() if name not in self._ended]
        return not self._bytes.keys() <= self._ended.keys()

    def _advance(self, group: Group, progress: _Progress, reading: Reading) -> None:
        """Adds what was counted since the group last ran. What it missed while something else had the counters is
        filled in at the rate of what it saw."""
        if progress.last is None:
            progress.last = reading
            return
        (enabled_ns, running_ns, values), (enabled_before_ns, running_before_ns, before) = reading, progress.last
        passed_ns, ran_ns = enabled_ns - enabled_before_ns, running_ns - running_before_ns
        if ran_ns <= 0:
            return
        progress.last = reading
        progress.enabled_ns += passed_ns
        progress.running_ns += ran_ns
        for part, value, value_before in zip(group.parts, values, before, strict=True):
            if value < value_before:
                progress.backward += 1
                continue
            moved_bytes = (value - value_before) * part.bytes_per_count * (passed_ns / ran_ns)
            for name in part.series:
                if name in self._bytes:
                    self._bytes[name] += moved_bytes

    def missing(self) -> dict[str, Unavailable]:
        """Series -> why it is not there at all: what cannot be had, and sums with a term that never counted."""
        missing = dict(self._plan.missing)
        for group, progress in self._progress.items():
            if progress.running_ns == 0:
                for name in group.series:
                    missing.setdefault(name, self._ended.get(name, Unavailable(f"{group} never counted")))
        return missing

    def series(self) -> pl.DataFrame:
        """Rows of ``series``, by time: bytes, from 0."""
        frame = pl.DataFrame(
            self._rows, schema={"time_ns": pl.Int64, "name": pl.String, "value": pl.Float64}, orient="row"
        )
        there = frame.filter(~pl.col("name").is_in(list(self.missing())))
        return conform("series", there.with_columns(unit=pl.lit("B")))

    def notes(self) -> list[Note]:
        """What the user should know about the readings."""
        missing = self.missing()
        early = {name: reason for name, reason in self._ended.items() if name not in missing}
        notes = _by_reason(missing) + _by_reason(early, NoteKind.INCOMPLETE, "ends early: ")
        shares = sorted(
            progress.running_ns / progress.enabled_ns
            for progress in self._progress.values()
            if 0 < progress.running_ns < _WHOLE * progress.enabled_ns
        )
        if shares:
            least, most = f"{shares[0]:.0%}", f"{shares[-1]:.0%}"
            text = (
                f"the kernel multiplexed: {len(shares)} of {len(self._progress)} groups of counters ran for"
                f" {least if least == most else f'{least} to {most}'} of the time;"
                " what they missed is filled in at the same rate"
            )
            notes.append(Note(NoteKind.MULTIPLEXED, text))
        notes += [
            Note(NoteKind.SUSPECT, f"went backwards {progress.backward} times, which adds nothing", str(group))
            for group, progress in self._progress.items()
            if progress.backward
        ]
        return notes

    def reading_us(self) -> float | None:
        """How long it takes to read all groups once (the median); None before the first time."""
        return statistics.median(self._durations_ns) / 1e3 if self._durations_ns else None


def _by_reason(series: dict[str, Unavailable], kind: NoteKind = NoteKind.NOT_AVAILABLE, what: str = "") -> list[Note]:
    reasons: dict[Unavailable, list[str]] = {}
    for name, why in series.items():
        reasons.setdefault(why, []).append(name)
    return [Note(kind, f"{what}{why.reason}", ", ".join(names), why.remedy) for why, names in reasons.items()]
