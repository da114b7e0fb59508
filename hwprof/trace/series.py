"""A pass's series as counter tracks, and what cumulative ones grow by."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl

from hwprof.analysis import uncore
from hwprof.trace.counters import RateOfChange, write_values
from hwprof.trace.encoder import EventSequence
from hwprof.trace.time_windows import ROWS, windows
from hwprof.trace.tracks import Tracks


def write_series(series: pl.LazyFrame, tracks: Tracks, advance: Callable[[int], None]) -> int:
    """Writes rows of ``series``, and returns how many values that were; ``advance`` gets the number of rows as they are
    written."""
    values = 0
    for name, unit, mine in _each(series):
        sequence = _track(tracks, name, unit)
        rate_of_change = _rate_of_change(tracks, name, unit)
        for since, until in windows(mine, "time_ns"):
            rows = mine.filter(pl.col("time_ns").is_between(since, until, closed="left")).sort("time_ns").collect()
            known = rows.drop_nulls("value")
            time_ns, numbers = known["time_ns"].to_numpy(), known["value"].to_numpy()
            write_values(sequence, time_ns, numbers)
            if rate_of_change:
                rate_of_change.add(time_ns, numbers)
            values += len(known)
            advance(len(rows))
        if rate_of_change:
            rate_of_change.finish()
    return values


def _each(series: pl.LazyFrame) -> Iterator[tuple[str, str, pl.LazyFrame]]:
    """Every series with its rows, by name and unit. What fits into memory is read once, not once a series: a collector
    may bring thousands."""
    if series.select(pl.len()).collect(engine="streaming").item() <= ROWS:
        parts = series.collect().partition_by("name", "unit", as_dict=True)
        for (name, unit), mine in sorted(parts.items()):
            yield name, unit, mine.lazy()
        return
    names = series.select("name", "unit").unique().collect(engine="streaming").sort("name", "unit")
    for name, unit in names.iter_rows():
        yield name, unit, series.filter(name=name, unit=unit)


def _rate_of_change(tracks: Tracks, name: str, unit: str) -> RateOfChange | None:
    """What a cumulative series grows by has a track of its own."""
    source, _, rest = name.partition("/")
    if unit == "J":
        return RateOfChange(_track(tracks, f"power/{rest or source}", "W"))
    if name.startswith(uncore.PREFIX) and unit == "B":
        return RateOfChange(_track(tracks, f"traffic/{rest}", "GB/s"), 1e-9)
    return None


def _track(tracks: Tracks, name: str, unit: str) -> EventSequence:
    return tracks.counter(name.partition("/")[0], name, unit, share_axis=unit)
