"""What a CSV file holds."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec


@dataclass(frozen=True)
class Table:
    """Columns by header, all of one length; None is: not measured."""

    columns: Mapping[str, Sequence[Any]]
    delimiter: str = ","

    def write(self, path: Path) -> None:
        """The table in full precision; an empty cell is None. Raises ``OSError``."""
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n", delimiter=self.delimiter)
            writer.writerow(self.columns)
            writer.writerows(zip(*self.columns.values(), strict=True))


def columns_of(rows: Iterable[msgspec.Struct], names: Iterable[str], headers: Mapping[str, str]) -> Table:
    """These fields of the rows, under their ``headers`` where they have other ones."""
    rows = list(rows)
    return Table({headers.get(name, name): [getattr(row, name) for row in rows] for name in names})


def fields_of(kind: type[msgspec.Struct]) -> list[str]:
    """The names of a struct's fields."""
    return [field.name for field in msgspec.structs.fields(kind)]
