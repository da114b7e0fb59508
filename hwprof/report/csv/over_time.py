"""``over_time.csv``: what an iteration took over the time of the pass that times are from."""

from __future__ import annotations

from hwprof.report.csv.table import Table, columns_of, fields_of
from hwprof.report.document.document import Document
from hwprof.report.document.over_time import OverTime, PartOfTime


def files(document: Document) -> dict[str, Table]:
    """A row a part of the time."""
    part = document.part(OverTime)
    return {} if part is None else {"over_time.csv": columns_of(part.parts, fields_of(PartOfTime), {})}
