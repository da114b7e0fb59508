"""``primitives.csv``: what each layer executed of oneDNN."""

from __future__ import annotations

from typing import Final

from hwprof.report.csv.roofline import OF_CODE, of_code
from hwprof.report.csv.table import File, Table, of_struct, table_of
from hwprof.report.document.document import Document
from hwprof.report.document.primitives import Primitive, Primitives

HEADERS: Final = {"share": "share_of_layer_ratio", "bytes": "bytes_modelled", "flops": "flops_modelled"}
COLUMNS: Final = of_struct(Primitive, HEADERS, without=["roofline"])
FILES: Final = (
    File("primitives.csv", "a layer and an implementation of oneDNN's that it executed", {**COLUMNS, **OF_CODE}),
)


def files(document: Document) -> dict[str, Table]:
    """A row a layer and what it executed alike."""
    part = document.part(Primitives)
    if part is None:
        return {}
    own = table_of(part.by_layer, COLUMNS).columns
    return {"primitives.csv": Table({**own, **of_code([one.roofline for one in part.by_layer])})}
