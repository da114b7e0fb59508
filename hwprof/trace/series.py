"""A pass's series as counter tracks, and what cumulative ones grow by."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from hwprof.analysis import uncore
from hwprof.trace.counters import Growth, write_values
from hwprof.trace.encoder import EventSequence
from hwprof.trace.layout import Layout
from hwprof.trace.windows import windows


def write_series(series: pl.LazyFrame, layout: Layout, advance: Callable[[int], None]) -> int:
    """Writes rows of ``series``, and returns how many values that were; ``advance`` is told of rows as they are
    written."""
    values = 0
    names = series.select("name", "unit").unique().collect(engine="streaming").sort("name", "unit")
    for name, unit in names.iter_rows():
        mine = series.filter(name=name, unit=unit)
        sequence = _track(layout, name, unit)
        growth = _growth(layout, name, unit)
        for since, until in windows(mine, "time_ns"):
            rows = mine.filter(pl.col("time_ns").is_between(since, until, closed="left")).sort("time_ns").collect()
            known = rows.drop_nulls("value")
            time_ns, numbers = known["time_ns"].to_numpy(), known["value"].to_numpy()
            write_values(sequence, time_ns, numbers)
            if growth:
                growth.add(time_ns, numbers)
            values += len(known)
            advance(len(rows))
        if growth:
            growth.finish()
    return values


def _growth(layout: Layout, name: str, unit: str) -> Growth | None:
    """What a cumulative series grows by has a track of its own."""
    source, _, rest = name.partition("/")
    if unit == "J":
        return Growth(_track(layout, f"power/{rest or source}", "W"))
    if name.startswith(uncore.PREFIX) and unit == "B":
        return Growth(_track(layout, f"traffic/{rest}", "GB/s"), 1e-9)
    return None


def _track(layout: Layout, name: str, unit: str) -> EventSequence:
    return layout.counter(name.partition("/")[0], name, unit, share_axis=unit)
