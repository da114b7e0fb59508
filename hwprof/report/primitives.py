"""oneDNN's primitives of a run, from its tables and its manifest."""

from __future__ import annotations

import polars as pl

from hwprof.analysis.primitives import CLOCK, COLLECTOR, Primitives, analyse
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import CollectorRecord, PassRecord


def of_run(run: RunDirectory) -> Primitives | None:
    """What the first completed pass tells in which oneDNN reported; None where it did in none. The collector's record
    says why, as for every collector."""
    for record in run.completed_passes():
        reported = _reported(record)
        clock = next((clock for clock in record.clocks if clock.name == CLOCK), None)
        if reported is None or clock is None:
            continue
        of_pass = pl.col("pass") == record.name
        return analyse(
            run.read("primitives").filter(of_pass),
            run.read("spans").filter(of_pass),
            run.read("layers"),
            clock.error_ns,
            reported.detail.get("machine_flags", ()),
        )
    return None


def _reported(record: PassRecord) -> CollectorRecord | None:
    return next((one for one in record.collectors if one.name == COLLECTOR and one.state == "ran"), None)
