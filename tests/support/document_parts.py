"""What tests ask of a document."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
import polars as pl

from hwprof.report.csv.files import csv_files
from hwprof.report.document.document import Document
from hwprof.report.document.layers import Layer, Layers
from hwprof.report.document.part import Part

P = TypeVar("P", bound=Part)


def part(document: Document, kind: type[P]) -> P:
    """A section's part, which is there."""
    found = document.part(kind)
    assert found is not None, f"there is no {kind.__name__}: {document.absent}"
    return found


def replaced(document: Document, changed: Part) -> Document:
    """The document with another part in the place of the one of that type."""
    parts = {name: changed if type(one) is type(changed) else one for name, one in document.parts.items()}
    return msgspec.structs.replace(document, parts=parts)


def layer_rows(document: Document) -> list[Layer]:
    """The leaf layers."""
    return part(document, Layers).rows


def instrumented_layers(report: dict[str, Any], number: int = 0) -> dict[str, Any]:
    """The layers of an instrumented pass, of the report as JSON."""
    found = report["instrumented"]["passes"][number]["layers"] or report["layers"]
    return dict(found)


def whole(document: Document) -> Layer:
    """What all layers add up to."""
    found = part(document, Layers).whole
    assert found is not None
    return found


def unattributed(document: Document) -> Layer:
    """What no layer owns."""
    found = part(document, Layers).unattributed
    assert found is not None
    return found


def csv_frames(document: Document) -> dict[str, pl.DataFrame]:
    """The CSV files as tables, by file name."""
    return {
        name: pl.DataFrame(dict(table.columns), strict=False, infer_schema_length=None)
        for name, table in csv_files(document).items()
    }
