"""What a pass brought, where it stays: its rows in the run's tables, its record in the manifest."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec
import polars as pl

from hwprof.collector.contract import Collected
from hwprof.run.directory import RunDirectory, write_table
from hwprof.run.manifest import CollectorRecord, PassRecord
from hwprof.run.tables import scan_table
from hwprof.session.failure import alone
from hwprof.session.messages import Finished
from hwprof.session.pass_record import PLANNED
from hwprof.session.plan import CollectorPlan
from hwprof.session.results import PassResults


def keep(
    run: RunDirectory,
    folder: Path,
    record: PassRecord,
    finished: Finished,
    collected: Sequence[tuple[CollectorPlan, Collected]],
    others: Sequence[CollectorRecord],
) -> None:
    """``folder``: where the worker wrote its tables. ``others``: of collectors that brought nothing. Raises ``OSError``
    and polars' errors."""
    results = PassResults(
        finished.record,
        lambda: scan_table(folder / "spans.parquet", "spans").collect(),
        lambda: _series(folder, finished),
        folder,
    )
    for planned, result in collected:
        with alone(planned, finished.record.collectors):
            results.keep(planned, result)
    rows = results.tables()
    for table in finished.tables:
        run.append(table, folder / f"{table}.parquet")
    for table, frame in rows.items():
        part = folder / f"outside-{table}.parquet"
        write_table(part, table, frame)
        run.append(table, part)
    results.discard()
    for name in msgspec.structs.fields(PassRecord):
        if name.name not in ("name", "status", "reason", *PLANNED):
            setattr(record, name.name, getattr(finished.record, name.name))
    record.collectors += others
    if (workload := run.manifest.workload) is not None:
        workload.results = finished.results or workload.results
        workload.notes += finished.notes


def _series(folder: Path, finished: Finished) -> Collection[str]:
    """The names of those that collectors in the worker brought."""
    if "series" not in finished.tables:
        return ()
    return set(scan_table(folder / "series.parquet", "series").select(pl.col("name").unique()).collect()["name"])
