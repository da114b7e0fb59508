"""How the machine drifted, on tracks that show all of a pass, also where its slices are of its first iterations only:
what each iteration took, and the core's frequency."""

from __future__ import annotations

from typing import Final

import polars as pl

from hwprof.analysis.core_clock import series_name
from hwprof.analysis.over_time import over_time
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import PassRecord
from hwprof.trace.counters import write_values
from hwprof.trace.tracks import OVER_TIME, Tracks

MOST: Final = 100_000
"""Values: of more iterations each is the median of some."""

DESCRIPTION: Final = "what an iteration took that begins here; of the most frequent kind, after warm-up"


def write_iteration_times(run: RunDirectory, record: PassRecord, tracks: Tracks) -> None:
    """Those of a pass of the whole ``run``."""
    spans = run.scan_pass("spans", record.name).filter(kind="iteration").collect(engine="streaming")
    found = over_time(record, spans, run.scan("series").clear().collect(), MOST)
    if found is None:
        return
    sequence = tracks.counter(OVER_TIME, "iteration time", "ms", description=DESCRIPTION)
    write_values(sequence, found.parts["begin_ns"].to_numpy(), found.parts["median_ns"].to_numpy() / 1e6)


def series_over_time(run: RunDirectory, shown: RunDirectory, record: PassRecord) -> pl.LazyFrame:
    """A pass's series as far as it is ``shown``, but for the core's frequency, which is the whole ``run``'s."""
    name = series_name(record)
    series = shown.scan_pass("series", record.name)
    if name is None:
        return series
    whole = run.scan_pass("series", record.name).filter(pl.col("name") == name)
    return pl.concat([series.filter(pl.col("name").ne_missing(name)), whole])
