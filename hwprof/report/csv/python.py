"""``python_functions.csv``: what each function of Python's took in each stage."""

from __future__ import annotations

from typing import Final

from hwprof.report.csv.table import Table, columns_of, fields_of
from hwprof.report.document.document import Document
from hwprof.report.document.python import Python, PythonFunction

HEADERS: Final = {"share": "share_of_stage_ratio"}


def files(document: Document) -> dict[str, Table]:
    """A row a stage, thread and function."""
    part = document.part(Python)
    if part is None:
        return {}
    return {"python_functions.csv": columns_of(part.functions, fields_of(PythonFunction), HEADERS)}
