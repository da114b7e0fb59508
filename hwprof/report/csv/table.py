"""What a CSV file holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:  # whoever shows a kept document needs no table
    import polars as pl


@dataclass(frozen=True)
class Table:
    """Columns by header, all of one length; None is: not measured."""

    columns: Mapping[str, Sequence[Any]]
    delimiter: str = ","

    def write(self, path: Path) -> None:
        """The table in full precision; an empty cell is None. Raises ``OSError``."""
        import polars as pl

        rows = pl.DataFrame([_series(name, values) for name, values in self.columns.items()])
        with path.open("wb") as file:
            rows.write_csv(file, separator=self.delimiter)


def _series(name: str, values: Sequence[Any]) -> pl.Series:
    """Numbers of one kind as these, all others as texts; one without a letter is an empty cell too, not ``""``."""
    import polars as pl

    kinds = {type(value) for value in values if value is not None}
    if len(kinds) == 1 and (kind := {int: pl.Int64, float: pl.Float64}.get(*kinds)) is not None:
        return pl.Series(name, values, dtype=kind)
    return pl.Series(name, [None if value in (None, "") else str(value) for value in values], dtype=pl.String)


def columns_of(rows: Iterable[msgspec.Struct], names: Iterable[str], headers: Mapping[str, str]) -> Table:
    """These fields of the rows, under their ``headers`` where they have other ones."""
    rows = list(rows)
    return Table({headers.get(name, name): [getattr(row, name) for row in rows] for name in names})


def fields_of(kind: type[msgspec.Struct]) -> list[str]:
    """The names of a struct's fields."""
    return [field.name for field in msgspec.structs.fields(kind)]
