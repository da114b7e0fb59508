"""``primitives.csv``: what each layer executed of oneDNN."""

from __future__ import annotations

from typing import Final

from hwprof.report.csv.table import Table, columns_of, fields_of
from hwprof.report.document.document import Document
from hwprof.report.document.primitives import Primitive, Primitives

HEADERS: Final = {"share": "share_of_layer_ratio"}


def files(document: Document) -> dict[str, Table]:
    """A row a layer and what it executed alike."""
    part = document.part(Primitives)
    return {} if part is None else {"primitives.csv": columns_of(part.by_layer, fields_of(Primitive), HEADERS)}
