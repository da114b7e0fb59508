"""``memory.csv``: what each layer allocates, keeps and gets anew, in an iteration."""

from __future__ import annotations

from typing import Final

from hwprof.report.csv.table import Table, columns_of, fields_of
from hwprof.report.document.document import Document
from hwprof.report.document.memory import LayerMemory, Memory

HEADERS: Final = {"fresh": "fresh_ratio", "faults": "page_faults"}


def files(document: Document) -> dict[str, Table]:
    """A row a layer, and one for the whole."""
    part = document.part(Memory)
    if part is None or part.whole is None:
        return {}
    return {"memory.csv": columns_of([part.whole, *part.rows], fields_of(LayerMemory), HEADERS)}
