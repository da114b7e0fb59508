"""The document as CSV files in the run directory: full precision, units in the headers."""

from __future__ import annotations

import os

from hwprof.report import sections
from hwprof.report.csv.table import Table
from hwprof.report.document.document import Document
from hwprof.run.atomic import atomic
from hwprof.run.directory import RunDirectory


def csv_files(document: Document) -> dict[str, Table]:
    """The files of all sections, by file name; those of sections that the run has nothing of are left out."""
    return {name: table for section in sections.of_room("csv") for name, table in section.csv.files(document).items()}


def write_csv_files(run: RunDirectory, document: Document, *, missing: bool = False) -> None:
    """Writes them, each atomically; ``missing``: those that are not there. Raises ``OSError`` where the directory
    cannot be written."""
    for name, table in csv_files(document).items():
        if missing and os.path.lexists(run.path / name):
            continue
        with atomic(run.path / name) as part:
            table.write(part)
