"""What a CSV file holds."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec

if TYPE_CHECKING:  # whoever shows a kept document needs no table
    import polars as pl


POINT: Final = ".0"
"""Behind a whole number that is a float."""


@dataclass(frozen=True)
class Table:
    """Columns by header, all of one length; None is: not measured."""

    columns: Mapping[str, Sequence[Any]]
    delimiter: str = ","

    def write(self, path: Path) -> None:
        """The table in full precision; an empty cell is None. Raises ``OSError``."""
        with path.open("wb") as file:
            self._frame().write_csv(file, separator=self.delimiter)

    def text(self) -> str:
        """The same as text."""
        return self._frame().write_csv(separator=self.delimiter)

    def _frame(self) -> pl.DataFrame:
        import polars as pl

        return without_points(pl.DataFrame([_series(name, values) for name, values in self.columns.items()]))


def without_points(rows: pl.DataFrame) -> pl.DataFrame:
    """Columns of whole numbers, whatever type they have, without a point; all others with every digit, and one point a
    figure: who reads the file takes a column's type from its first rows."""
    import polars as pl
    from polars import selectors

    floats = rows.select(selectors.float())
    whole = [column.name for column in floats if (column.drop_nulls() % 1 == 0).all()]
    texts = pl.col(whole).cast(pl.String).str.strip_suffix(POINT)
    return rows.with_columns(texts.replace("-0", "0"))


def _series(name: str, values: Sequence[Any]) -> pl.Series:
    """Numbers and truth values of one kind as these, all others as texts; one without a letter is an empty cell too,
    not ``""``."""
    import polars as pl

    kinds = {type(value) for value in values if value is not None}
    if len(kinds) == 1 and (kind := {int: pl.Int64, float: pl.Float64, bool: pl.Boolean}.get(*kinds)) is not None:
        return pl.Series(name, values, dtype=kind)
    return pl.Series(name, [None if value in (None, "") else _text(value) for value in values], dtype=pl.String)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).removesuffix(POINT) if isinstance(value, float) else str(value)


class Field(NamedTuple):
    """Where a column's values come from: a field of the document, whose comment says what they are."""

    kind: type[msgspec.Struct]
    name: str


Columns: TypeAlias = Mapping[str, Field | str]
"""By header what is in a column: a field, or words where that is no single one. What a header has in capitals (EVENT)
is a name that depends on the run."""

EVENT, METRIC, LEVEL, ZONE, PASS = "EVENT", "METRIC", "LEVEL", "ZONE", "PASS"


class File(NamedTuple):
    """A CSV file: what a row is, and its columns."""

    name: str  # may have a PASS in it
    row: str
    columns: Columns


def of_struct(
    kind: type[msgspec.Struct], headers: Mapping[str, str] = MappingProxyType({}), without: Container[str] = ()
) -> dict[str, Field]:
    """A column for each field of a struct, under its ``headers`` where it has another one."""
    return {headers.get(name, name): Field(kind, name) for name in fields_of(kind) if name not in without}


def table_of(rows: Iterable[msgspec.Struct], columns: Mapping[str, Field]) -> Table:
    """The rows, which have these fields."""
    rows = list(rows)
    return Table({header: [getattr(row, field.name) for row in rows] for header, field in columns.items()})


def fields_of(kind: type[msgspec.Struct]) -> list[str]:
    """The names of a struct's fields."""
    return [field.name for field in msgspec.structs.fields(kind)]
