"""``primitives.csv``: what each layer executed of oneDNN."""

from __future__ import annotations

from typing import Final

from hwprof.report.csv.roofline import of_code
from hwprof.report.csv.table import Table, columns_of, fields_of
from hwprof.report.document.document import Document
from hwprof.report.document.primitives import Primitive, Primitives

HEADERS: Final = {"share": "share_of_layer_ratio", "bytes": "bytes_modelled", "flops": "flops_modelled"}


def files(document: Document) -> dict[str, Table]:
    """A row a layer and what it executed alike."""
    part = document.part(Primitives)
    if part is None:
        return {}
    names = [name for name in fields_of(Primitive) if name != "roofline"]
    own = columns_of(part.by_layer, names, HEADERS).columns
    return {"primitives.csv": Table({**own, **of_code([one.roofline for one in part.by_layer])})}
