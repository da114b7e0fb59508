"""Counter tracks: what changes over time, from the series table and from the counts of leaf layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from hwprof.run.manifest import PassRecord
from hwprof.run.process_events import COUNTED_WINDOW, PROCESS_EVENTS
from hwprof.trace.encoder import Events, EventSequence
from hwprof.trace.packet_sequence import Ints
from hwprof.trace.packets import EventType

Floats = npt.NDArray[np.float64]

ADJACENT_NS: Final = 10_000
"""A pause shorter than this between two leaf layers is the Python between two modules, and the rate is held."""


def write_values(sequence: EventSequence, time_ns: Ints, values: Floats) -> None:
    """Writes a counter's values."""
    kinds = np.full(len(time_ns), EventType.COUNTER, np.uint8)
    sequence.write(Events(time_ns, kinds, value=np.ascontiguousarray(values)))


class RateOfChange:
    """What a cumulative series grows by each second: watts from joules, GB/s from bytes (with a ``scale`` of 1e-9).

    Each value holds from one reading to the next; it is zero after the last.
    """

    def __init__(self, sequence: EventSequence, scale: float = 1.0) -> None:
        self._sequence = sequence
        self._scale = scale
        self._last: tuple[Ints, Floats] = (np.empty(0, np.int64), np.empty(0))

    def add(self, time_ns: Ints, readings: Floats) -> None:
        """Further readings, in order."""
        if not len(time_ns):
            return  # of a window in which nothing is known
        time_ns, readings = np.append(self._last[0], time_ns), np.append(self._last[1], readings)
        later = np.diff(time_ns, append=time_ns[-1] + 1) > 0  # of readings at one time, the last
        time_ns, readings = time_ns[later], readings[later]
        self._last = time_ns[-1:], readings[-1:]
        write_values(self._sequence, time_ns[:-1], self._scale * np.diff(readings) / (np.diff(time_ns) / 1e9))

    def finish(self) -> None:
        """Ends the track."""
        if len(self._last[0]):
            write_values(self._sequence, self._last[0], np.zeros(1))


class Rate:
    """An event's rate over the leaf layers; zero where the next one does not begin at once."""

    def __init__(self, sequence: EventSequence) -> None:
        self._sequence = sequence
        self._end_ns: int | None = None

    def add(self, begin_ns: Ints, end_ns: Ints, values: Floats) -> None:
        """Further layers, by begin."""
        if self._end_ns is not None and begin_ns[0] - self._end_ns > ADJACENT_NS:
            self.finish()
        pause = begin_ns[1:] - end_ns[:-1] > ADJACENT_NS
        time_ns = np.insert(begin_ns, np.flatnonzero(pause) + 1, end_ns[:-1][pause])
        write_values(self._sequence, time_ns, np.insert(values, np.flatnonzero(pause) + 1, 0.0))
        self._end_ns = int(end_ns[-1])

    def finish(self) -> None:
        """Ends the track."""
        if self._end_ns is not None:
            write_values(self._sequence, np.array([self._end_ns]), np.zeros(1))


class Rates:
    """The rates of all events of a pass."""

    def __init__(self, record: PassRecord, add_track: Callable[[str, str], EventSequence]) -> None:
        """``add_track`` makes a counter track from name and unit."""
        self._units = {event.name: event.unit for event in record.events}
        self._add_track = add_track
        self._rates: dict[str, Rate] = {}

    def add(self, leaves: pl.DataFrame, counts: pl.DataFrame) -> None:
        """The counts of further leaf layers, which begin after all before. What was counted for a part of the time is
        scaled to all of it; what was never counted has no rate."""
        windows = counts.filter(pl.col("event") == COUNTED_WINDOW).select("span", window_ns="value")
        rates = (
            counts.filter((pl.col("running_ns") > 0) & ~pl.col("event").is_in(PROCESS_EVENTS))
            .join(leaves.filter(pl.col("end_ns") > pl.col("begin_ns")), on="span")
            .with_columns(scaled=pl.col("value") * (pl.col("enabled_ns") / pl.col("running_ns")))
            .group_by("event", "span")
            .agg(pl.col("begin_ns", "end_ns").first(), pl.col("scaled").sum(), thread_most=pl.col("scaled").max())
            .join(windows, on="span", how="left")
            .with_columns(pl.col("window_ns").fill_null(pl.col("end_ns") - pl.col("begin_ns")))
            .sort("begin_ns", "span")
        )
        events = rates.partition_by("event", as_dict=True)
        for (event,), rows in sorted(events.items(), key=lambda item: self._place(item[0][0])):
            begin_ns, end_ns = rows["begin_ns"].to_numpy(), rows["end_ns"].to_numpy()
            is_time = self._units.get(event) == "ns"
            windows_ns = rows["window_ns"].to_numpy()
            if is_time:  # threads are read one after the other: no thread was busy for longer than its counter ran
                values = rows["scaled"].to_numpy() / np.maximum(windows_ns, rows["thread_most"].to_numpy())
            else:
                values = rows["scaled"].to_numpy() / (windows_ns * 1e-9)
            self._of(event, is_time).add(begin_ns, end_ns, values)

    def finish(self) -> None:
        """Ends all tracks."""
        for rate in self._rates.values():
            rate.finish()

    def _place(self, event: str) -> tuple[int, str]:
        """Where an event stands: in the manifest's order, others after."""
        known = list(self._units)
        return (known.index(event) if event in self._units else len(known)), event

    def _of(self, event: str, is_time: bool) -> Rate:
        if event not in self._rates:
            name = unit = f"{event} per s" if "/" in event else f"{event}/s"
            if is_time:
                name, unit = ("CPUs busy" if event == "task-clock" else f"CPUs busy ({event})", "CPUs")
            self._rates[event] = Rate(self._add_track(name, unit))
        return self._rates[event]
