"""``python_calls.csv``: calls and times of Python's functions, by stage."""

from __future__ import annotations

from typing import Final

from hwprof.report.csv.table import Table, columns_of, fields_of
from hwprof.report.document.cprofile import CProfile, PythonCalls
from hwprof.report.document.document import Document

HEADERS: Final = {"share": "share_ratio"}


def files(document: Document) -> dict[str, Table]:
    """A row a stage and function."""
    part = document.part(CProfile)
    return {} if part is None else {"python_calls.csv": columns_of(part.rows, fields_of(PythonCalls), HEADERS)}
