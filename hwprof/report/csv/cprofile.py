"""``python_calls.csv``: calls and times of Python's functions, by stage."""

from __future__ import annotations

from typing import Final

from hwprof.report.csv.table import File, Table, of_struct, table_of
from hwprof.report.document.cprofile import CProfile, PythonCalls
from hwprof.report.document.document import Document

COLUMNS: Final = of_struct(PythonCalls, {"share": "share_ratio"})
FILES: Final = (File("python_calls.csv", "a stage and function of Python's with its calls (cProfile)", COLUMNS),)


def files(document: Document) -> dict[str, Table]:
    """A row a stage and function."""
    part = document.part(CProfile)
    return {} if part is None else {"python_calls.csv": table_of(part.rows, COLUMNS)}
