"""``over_time.csv``: what an iteration took over the time of the pass that times are from."""

from __future__ import annotations

from typing import Final

from hwprof.report.csv.table import File, Table, of_struct, table_of
from hwprof.report.document.document import Document
from hwprof.report.document.over_time import OverTime, PartOfTime

COLUMNS: Final = of_struct(PartOfTime)
FILES: Final = (
    File(
        "over_time.csv",
        "a fortieth of the main pass's iterations, in order: what one took, and the core's frequency",
        COLUMNS,
    ),
)


def files(document: Document) -> dict[str, Table]:
    """A row a part of the time."""
    part = document.part(OverTime)
    return {} if part is None else {"over_time.csv": table_of(part.parts, COLUMNS)}
