"""``series.csv``: every series of the run, summed up."""

from __future__ import annotations

from typing import Final

from hwprof.report.csv.table import File, Table, of_struct, table_of
from hwprof.report.document.document import Document
from hwprof.report.document.series import Series, SeriesSummary

COLUMNS: Final = of_struct(SeriesSummary, {"pass_": "pass"})
FILES: Final = (
    File("series.csv", "a time series of a pass: memory, energy, those of collectors of your own", COLUMNS),
)


def files(document: Document) -> dict[str, Table]:
    """A row a pass and series."""
    part = document.part(Series)
    return {} if part is None else {"series.csv": table_of(part.rows, COLUMNS)}
