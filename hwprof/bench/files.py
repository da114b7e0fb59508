"""What a bench leaves beside its cases: the table as CSV, JSON, Markdown and HTML, the picture, and one file with what
pyperf measured, for ``pyperf compare_to``."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote

import msgspec

from hwprof.bench import page, plot, table
from hwprof.bench.rows import Row
from hwprof.bench.store import LARGEST_BYTES, PYPERF_FILE, Store
from hwprof.errors import HwprofError, cannot_write
from hwprof.printable import one_line
from hwprof.report.text.figures import plural
from hwprof.run.atomic import atomic
from hwprof.run.manifest import Machine
from hwprof.run.regular_files import read_regular

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
    processes = plural(how.processes, "process", "processes")
    median = f"median of a forward over all iterations of {processes}, {plural(how.values, 'value')} each"
    of_images = any(row.images_per_s is not None for row in rows)
    lines = [
        f"{of.processor}, {of.logical_processors} processors, {plan.created}",
        f"{median}; images/s of the model alone" if of_images else median,
        table.common(rows),
        table.noise(rows),
        table.energy_told(rows),
        *table.remarks(rows, how.min_time_s),
    ]
    return [one_line(line) for line in lines if line]


def write(store: Store, rows: Sequence[Row]) -> tuple[list[str], HwprofError | None]:
    """The names of those that could be written, and why one could not."""
    told = heading(store, rows)
    drawn = functools.cache(lambda: plot.drawing(rows))  # behind what the figures are in
    makers: dict[str, Callable[[], bool]] = {
        "bench.md": lambda: _put(store, "bench.md", table.markdown(rows, told).encode()),
        "bench.csv": lambda: _csv(store, rows),
        "table.json": lambda: _put(store, "table.json", as_json(store, rows)),
        PYPERF_FILE: lambda: _suite(store),
        "bench.html": lambda: _put(store, "bench.html", page.page(rows, store.path.name, told, drawn()).encode()),
        "bench.svg": lambda: _put(store, "bench.svg", (drawn() or "").encode()),
        f"{PARQUET}/": lambda: _by_machine(store, rows),
    }
    written: list[str] = []
    unwritten: HwprofError | None = None
    for name, make in makers.items():
        try:
            if make():
                written.append(name)
        except OSError as error:
            unwritten = unwritten or cannot_write(store.path / name, error)
    return written, unwritten


def _put(store: Store, name: str, data: bytes) -> bool:
    """Whether there is anything."""
    if data:
        with atomic(store.path / name) as part:
            part.write_bytes(data)
    return bool(data)


def _csv(store: Store, rows: Sequence[Row]) -> bool:
    with atomic(store.path / "bench.csv") as part:
        table.csv_table(rows).write(part)
    return True


def _by_machine(store: Store, rows: Sequence[Row]) -> bool:
    """The rows as Parquet, by machine (``machine=NAME``), where other machines did some."""
    if not any(row.machine for row in rows):
        return False
    import polars as pl

    every = pl.DataFrame(table.csv_table(rows).columns, infer_schema_length=None, strict=False)
    shutil.rmtree(store.path / PARQUET, ignore_errors=True)
    for name in every["machine"].unique(maintain_order=True):
        place = store.path / PARQUET / f"machine={quote(name or HERE, safe='')}"
        place.mkdir(parents=True)
        some = every.filter(pl.col("machine").eq_missing(name)).drop("machine")
        some.write_parquet(place / "rows.parquet")
    return True


def _suite(store: Store) -> bool:
    """All benchmarks that pyperf measured, in one file."""
    import pyperf

    found: list[Any] = []
    for file in store.pyperf_files(store.results()):
        with suppress(OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError):  # of a damaged one
            data = read_regular(file, LARGEST_BYTES).decode()  # a model's code may have put anything there
            there = {one.get_name() for one in found}
            found += [one for one in pyperf.BenchmarkSuite.loads(data) if one.get_name() not in there]
    if not found:
        return False
    with atomic(store.path / PYPERF_FILE) as part:
        pyperf.BenchmarkSuite(found).dump(str(part), replace=True)
    return True
