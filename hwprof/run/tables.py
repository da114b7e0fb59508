"""A table's file as polars reads and writes it: by its very name, and checked against the schema before it is used."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import polars as pl

from hwprof.errors import DamagedError, HwprofError
from hwprof.printable import as_written, is_text
from hwprof.run.regular_files import is_regular
from hwprof.run.schema import LATER, TABLES, UNIQUE, required

MOMENTS: Final = ("time_ns", "begin_ns", "end_ns", "out_ns", "in_ns")
"""Columns that hold moments of the monotonic clock, which counts from the machine's start."""

OF_THE_SYSTEM: Final = re.compile(r"thread|os error (11|12|23|24)\b|Cannot allocate|Too many open", re.IGNORECASE)
"""What libraries say where a limit is in the way."""

LATEST_NS: Final = 1 << 61
"""73 years."""

COPIES: Final = 4
"""Of a table's rows that an analysis holds at its worst, sorted, joined and filtered: 380 bytes a sample were seen."""

REFERENCE_BYTES: Final = 16
"""Of a text or a list in a column: what it has beside its characters."""


def _by_name(path: Path) -> str:
    """The path as polars takes it literally: a leading ``~`` is a folder's name, not the user's home."""
    return str(path) if path.is_absolute() else f"{os.curdir}{os.sep}{path}"


def scan_table(path: Path, table: str) -> pl.LazyFrame:
    """The file's rows, in the table's columns; ``[``, ``*`` and ``?`` in its path are nothing but characters.

    Raises ``HwprofError`` for a file that does not hold such a table. Of the file only its own description is read.
    """
    if not is_regular(path):
        raise damaged(path, "it is no regular file")
    if not is_text(str(path)):
        raise HwprofError(f"the name {as_written(str(path.parent))} is not UTF-8", "rename the folder")
    try:
        frame = pl.scan_parquet(_by_name(path), glob=False, hive_partitioning=False)
        found = frame.collect_schema()
    except (Exception, pl.exceptions.PanicException) as error:  # a panic is no Exception
        raise unreadable(path, error) from error
    later = {name: TABLES[table][name] for name in LATER.get(table, ()) if name not in found}
    for name, kind in TABLES[table].items():
        if name not in found and name not in later:
            raise damaged(path, f"it has no column {name}")
        if name in found and found[name] != kind:
            raise damaged(path, f"its column {name} is {found[name]}, not {kind}")
    filled = frame.with_columns(pl.lit(None, dtype=kind).alias(name) for name, kind in later.items())
    return filled.select(list(TABLES[table]))


def memory_bytes(path: Path, table: str) -> int:
    """What it takes at most, roughly, to analyse the file: equal rows take hardly any room in it, and some hundred
    bytes each in memory. Of the file only its own description is read. Raises as ``scan_table``."""
    with readable(path):
        rows = int(scan_table(path, table).select(pl.len()).collect().item())
    return COPIES * rows * sum(_width_bytes(kind) for kind in TABLES[table].values())


def _width_bytes(kind: pl.DataType) -> int:
    fixed = {pl.Int64: 8, pl.UInt64: 8, pl.Float64: 8, pl.Int32: 4, pl.UInt32: 4, pl.Boolean: 1}
    return next((width for one, width in fixed.items() if kind == one), REFERENCE_BYTES)


def whole(path: Path, table: str, frame: pl.DataFrame) -> pl.DataFrame:
    """The file's rows, read; raises ``HwprofError`` where one lacks what every row has, has a time that is none, or is
    there twice."""
    _refuse(path, [name for name in required(table) if frame[name].has_nulls()])
    _refuse_times(path, frame.select(_odd_times(table)))
    refuse_repeated(path, table, frame)
    return frame


def require_values(path: Path, table: str, rows: pl.LazyFrame, *, decode_all: bool = False) -> None:
    """Raises as ``whole``, for rows that are never in memory at once; whether one is there twice is for whoever
    collects some of them (``refuse_repeated``). ``decode_all``: the columns too that may lack values are looked at, so
    that none of them is found to be damaged later."""
    columns = pl.all() if decode_all else pl.col(required(table))
    found = rows.select(columns.has_nulls()).collect(engine="streaming").select(required(table))
    _refuse(path, [name for name, has in found.row(0, named=True).items() if has])
    _refuse_times(path, rows.select(_odd_times(table)).collect(engine="streaming"))


def refuse_repeated(path: Path, table: str, frame: pl.DataFrame) -> None:
    """Raises as ``whole`` for rows that are there twice: all of a table's, or those of some time."""
    if table in UNIQUE and frame.select(UNIQUE[table]).is_duplicated().any():
        raise damaged(path, f"it has rows with the same {', '.join(UNIQUE[table])}")


def _odd_times(table: str) -> list[pl.Expr]:
    """Whether any of a table's moments lies where no clock can have told it, or anything lasted longer than clocks
    tell: sums, differences and multiples of such overflow. No span ends before it begins, either."""
    earliest_ns = {
        name: 0 if name in MOMENTS else -LATEST_NS
        for name, kind in TABLES[table].items()
        if name.endswith("_ns") and kind == pl.Int64
    }
    odd = {name: ~pl.col(name).is_between(earliest, LATEST_NS) for name, earliest in earliest_ns.items()}
    if table == "spans":
        odd["end_ns"] |= pl.col("end_ns") < pl.col("begin_ns")
    return [one.any().alias(name) for name, one in odd.items()]


def _refuse_times(path: Path, odd: pl.DataFrame) -> None:
    names = [name for name, has in odd.row(0, named=True).items() if has] if odd.width else []
    if names:
        told = f"it has impossible times in {', '.join(names)}, or the model's code has replaced Python's clocks"
        raise damaged(path, told)


def _refuse(path: Path, lacking: list[str]) -> None:
    """Raises where rows lack these columns' values."""
    if lacking:
        raise damaged(path, f"it has rows without {', '.join(lacking)}")


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Within it, rows that cannot be decoded end in one line on the file, or on the run, in ``path``: a scan reads them
    only when it is collected."""
    try:
        yield
    except (pl.exceptions.ComputeError, pl.exceptions.PanicException) as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: BaseException) -> DamagedError:
    """What a reader is told of what polars says: of the system's limits, which no file is to blame for, as of these."""
    said = _first_line(error)
    if OF_THE_SYSTEM.search(said):
        what = f"{path.name} of this run" if path.suffix == ".parquet" else f"the tables in {path}"
        return DamagedError(f"{what} cannot be read here: {said}", "higher limits (ulimit -a)", _table(path))
    return damaged(path, said)


def damaged(path: Path, why: str) -> DamagedError:
    """What a reader is told of a table's file, or of a run's folder."""
    what = f"{path.name} of this run is" if path.suffix == ".parquet" else f"the tables in {path} are"
    return DamagedError(f"{what} damaged: {why}", f"a copy of {path}, or hwprof collect again", _table(path))


def _table(path: Path) -> str | None:
    return path.stem if path.suffix == ".parquet" else None


def _first_line(error: BaseException) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
