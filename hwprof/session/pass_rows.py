"""The rows of a pass by table, however many: those of a table that became large lie in files until it is written."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import polars as pl

from hwprof.run.directory import write_table
from hwprof.run.schema import TABLES
from hwprof.run.tables import scan_table

MANY: Final = 65_536
"""Rows of a table that are held in memory: some five megabytes, and a group of rows as Parquet has them."""


class PassRows:
    """Rows in the tables' own columns and types (``schema.conform``)."""

    def __init__(self, folder: Path | None = None, many: int = MANY) -> None:
        """``folder``: for the files, which stay there; None: all is held in memory."""
        self._folder = folder
        self._many = many
        self._held: dict[str, list[pl.DataFrame]] = {}
        self._files: dict[str, list[Path]] = {}

    def add(self, table: str, rows: pl.DataFrame) -> None:
        """More of a table. Raises ``OSError``."""
        held = self._held.setdefault(table, [])
        held.append(rows)
        if self._folder is not None and sum(part.height for part in held) >= self._many:
            self._files.setdefault(table, []).append(self._written(table, pl.concat(held)))
            held.clear()

    def add_all(self, others: PassRows) -> None:
        """All that others have, who have nothing from then on: their files are this one's."""
        for table, files in others._files.items():
            self._files.setdefault(table, []).extend(files)
        others._files = {}
        for table, held in others._held.items():
            for rows in held:
                self.add(table, rows)
        others._held = {}

    def tables(self) -> dict[str, pl.LazyFrame]:
        """By name."""
        names = dict.fromkeys((*self._files, *self._held))
        return {table: pl.concat(self._parts(table)) for table in names}

    def discard(self) -> None:
        """The files are not wanted any more."""
        for file in (file for files in self._files.values() for file in files):
            file.unlink(missing_ok=True)
        self._files, self._held = {}, {}

    def _parts(self, table: str) -> Iterable[pl.LazyFrame]:
        """At least one."""
        yield from (scan_table(file, table) for file in self._files.get(table, ()))
        held = self._held.get(table)
        yield (pl.concat(held) if held else pl.DataFrame(schema=TABLES[table])).lazy()

    def _written(self, table: str, rows: pl.DataFrame) -> Path:
        assert self._folder is not None
        number = 0
        while (file := self._folder / f"{table}-part-{number}.parquet").exists():
            number += 1
        write_table(file, table, rows)
        return file
