"""``series.csv``: every series of the run, summed up."""

from __future__ import annotations

from hwprof.report.csv.table import Table, columns_of, fields_of
from hwprof.report.document.document import Document
from hwprof.report.document.series import Series, SeriesSummary


def files(document: Document) -> dict[str, Table]:
    """A row a pass and series."""
    part = document.part(Series)
    return {} if part is None else {"series.csv": columns_of(part.rows, fields_of(SeriesSummary), {"pass_": "pass"})}
