"""What a bench leaves beside its cases: the table as CSV, JSON, Markdown and HTML, the picture, and one file with what
pyperf measured, for ``pyperf compare_to``."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

import msgspec

from hwprof.bench import plot, table
from hwprof.bench.rows import Row
from hwprof.bench.store import PYPERF_FILE, Store
from hwprof.errors import FullDiskError, HwprofError, is_full_disk, remedy_of_writing
from hwprof.run.atomic import atomic
from hwprof.run.manifest import Machine

NAMES: Final = ("bench.md", "bench.csv", "table.json", "bench.html", "bench.svg")

PARQUET: Final = "parquet"
HERE: Final = "here"
"""The name of the machine that a bench was begun on."""


class Whole(msgspec.Struct, kw_only=True):
    """The table as JSON."""

    created: str
    machine: Machine
    rows: Sequence[Row]


def as_json(store: Store, rows: Sequence[Row]) -> bytes:
    """The rows, and on which machine they were measured."""
    whole = Whole(created=store.plan.created, machine=store.plan.machine, rows=rows)
    return msgspec.json.format(msgspec.json.encode(whole), indent=1)


def heading(store: Store, rows: Sequence[Row]) -> list[str]:
    """On what, how, and what all rows have in common."""
    plan = store.plan
    of = plan.machine
    how = plan.settings
    lines = [
        f"{of.processor}, {of.logical_processors} processors, {plan.created}",
        f"median of a forward over {how.processes} processes of {how.values} values each; images/s of the model alone",
        table.common(rows),
        table.noise(rows),
    ]
    return [line for line in lines if line]


def write(store: Store, rows: Sequence[Row]) -> list[str]:
    """Their names. Raises ``HwprofError``."""
    drawn = plot.drawing(rows)
    told = heading(store, rows)
    texts = {
        "bench.md": table.markdown(rows, told).encode(),
        "table.json": as_json(store, rows),
        "bench.html": table.page(rows, store.path.name, told, drawn).encode(),
        **({"bench.svg": drawn.encode()} if drawn is not None else {}),
    }
    try:
        for name, data in texts.items():
            with atomic(store.path / name) as part:
                part.write_bytes(data)
        with atomic(store.path / "bench.csv") as part:
            table.csv_table(rows).write(part)
        return [*texts, "bench.csv", *_by_machine(store, rows), *_suite(store)]
    except OSError as error:
        if is_full_disk(error):
            raise FullDiskError(str(store.path)) from error
        raise HwprofError(f"cannot write to {store.path}: {error.strerror}", remedy_of_writing(error)) from error


def _by_machine(store: Store, rows: Sequence[Row]) -> list[str]:
    """The rows as Parquet, by machine (``machine=NAME``), where other machines did some."""
    if not any(row.machine for row in rows):
        return []
    import polars as pl

    every = pl.DataFrame(table.csv_table(rows).columns, infer_schema_length=None, strict=False)
    shutil.rmtree(store.path / PARQUET, ignore_errors=True)
    for name in every["machine"].unique(maintain_order=True):
        place = store.path / PARQUET / f"machine={quote(name or HERE, safe='')}"
        place.mkdir(parents=True)
        some = every.filter(pl.col("machine").eq_missing(name)).drop("machine")
        some.write_parquet(place / "rows.parquet")
    return [f"{PARQUET}/"]


def _suite(store: Store) -> list[str]:
    """All benchmarks that pyperf measured, in one file."""
    import pyperf

    found = []
    for file in store.pyperf_files(store.results()):
        found += pyperf.BenchmarkSuite.load(str(file)).get_benchmarks()
    if not found:
        return []
    with atomic(store.path / PYPERF_FILE) as part:
        pyperf.BenchmarkSuite(found).dump(str(part), replace=True)
    return [PYPERF_FILE]
