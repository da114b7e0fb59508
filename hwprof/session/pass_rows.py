"""The rows of a pass by table, however many: those of a table that became large go to a file while more are made."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import polars as pl
from polars.io.plugins import register_io_source

from hwprof.helper_threads import Handover, HelperThread
from hwprof.run.directory import write_table
from hwprof.run.schema import TABLES
from hwprof.run.tables import scan_table

MANY: Final = 65_536
"""Rows of a table that are held in memory: some five megabytes, and a group of rows as Parquet has them."""

LOOK_EVERY_S: Final = 0.1


class PassRows:
    """Rows in the tables' own columns and types (``schema.conform``)."""

    def __init__(self, folder: Path | None = None, many: int = MANY) -> None:
        """``folder``: for the files, which stay there; None: all is held in memory."""
        self._folder = folder
        self._many = many
        self._held: dict[str, list[pl.DataFrame]] = {}
        self._written: dict[str, _Written] = {}
        self._files: dict[str, list[Path]] = {}  # whole ones
        self._failure: BaseException | None = None  # rows are lost: nobody gets the others

    def add(self, table: str, rows: pl.DataFrame) -> None:
        """More of a table. Raises ``OSError`` and ``PolarsError`` where they cannot be written."""
        held = self._held.setdefault(table, [])
        held.append(rows)
        if self._folder is None or sum(part.height for part in held) < self._many:
            return
        if table not in self._written:
            try:
                self._written[table] = _Written(self._folder, table)
            except RuntimeError:  # no thread can be had
                self._folder = None
                return
        with self._failing():
            self._written[table].add(pl.concat(held))
        held.clear()

    def add_all(self, others: PassRows) -> None:
        """All that others have, who have nothing from then on: their files are this one's. Raises as ``add``."""
        self.settle()
        others.settle()
        for table, files in others._files.items():
            self._files.setdefault(table, []).extend(files)
        others._files = {}
        for table, held in others._held.items():
            for rows in held:
                self.add(table, rows)
        others._held = {}

    def tables(self) -> dict[str, pl.LazyFrame]:
        """By name. Raises as ``add``."""
        self.settle()
        names = dict.fromkeys((*self._files, *self._held))
        return {table: pl.concat(self._parts(table)) for table in names}

    def write(self, folder: Path) -> Sequence[str]:
        """Writes each table into a file of its own, and returns their names: one that lies in one file already is
        moved. Raises as ``add``."""
        tables = self.tables()
        for table, rows in tables.items():
            files = self._files.get(table, [])
            if len(files) == 1 and not any(part.height for part in self._held.get(table, ())):
                files.pop().replace(folder / f"{table}.parquet")
            else:
                write_table(folder / f"{table}.parquet", table, rows)
        self.discard()
        return list(tables)

    def discard(self) -> None:
        """The files are not wanted any more."""
        for written in self._written.values():
            with contextlib.suppress(Exception):  # it is not wanted, either
                self._files.setdefault(written.table, []).append(written.finish())
        for file in (file for files in self._files.values() for file in files):
            file.unlink(missing_ok=True)
        self._files, self._held, self._written = {}, {}, {}

    def settle(self) -> None:
        """Until what is being written is written: all of its table. Raises as ``add``, once more where it did."""
        if self._failure is not None:
            raise self._failure
        with self._failing():
            for table, held in self._held.items():
                if table in self._written and held:
                    self._written[table].add(pl.concat(held))
                    held.clear()
            while self._written:
                _, written = self._written.popitem()
                self._files.setdefault(written.table, []).append(written.finish())

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        """What could not be written once is not there, whoever hears of it."""
        try:
            yield
        except BaseException as error:
            self._failure = error
            raise

    def _parts(self, table: str) -> Iterable[pl.LazyFrame]:
        """At least one."""
        yield from (scan_table(file, table) for file in self._files.get(table, ()))
        held = self._held.get(table)
        yield (pl.concat(held) if held else pl.DataFrame(schema=TABLES[table])).lazy()


class _Written:
    """A new file in a folder, that a thread writes, some rows after the others, while more of them are made."""

    def __init__(self, folder: Path, table: str) -> None:
        self.table = table
        self._file = _new(folder, table)
        self._next: Handover[pl.DataFrame | None] = Handover()
        try:
            self._thread = HelperThread(self._write)
        except RuntimeError:
            self._file.unlink(missing_ok=True)
            raise

    def add(self, rows: pl.DataFrame | None) -> None:
        """When those before are being written. Raises what writing raised."""
        while not self._next.put(rows, LOOK_EVERY_S):
            if self._thread.has_ended():  # it takes no more
                self._thread.result()

    def finish(self) -> Path:
        """The file, with all of them in it. Raises what writing raised: then there is no file."""
        try:
            self.add(None)
            self._thread.result()
        except BaseException:
            self._file.unlink(missing_ok=True)
            raise
        return self._file

    def _write(self) -> None:
        write_table(self._file, self.table, register_io_source(self._frames, schema=TABLES[self.table]))

    def _frames(self, columns: list[str] | None, *_: object) -> Iterator[pl.DataFrame]:
        while (rows := self._next.take()) is not None:
            yield rows if columns is None else rows.select(columns)


def _new(folder: Path, table: str) -> Path:
    handle, name = tempfile.mkstemp(dir=folder, prefix=f"{table}-", suffix=".parquet")
    os.close(handle)
    return Path(name)
