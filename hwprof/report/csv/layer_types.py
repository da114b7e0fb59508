"""``layer_types.csv``: the leaf layers summed up by type."""

from __future__ import annotations

from typing import Final

from hwprof.report.csv.figures import figure_columns, figure_table, own_events
from hwprof.report.csv.table import File, Table
from hwprof.report.document.document import Document
from hwprof.report.document.layer_types import LayerType, LayerTypes

COLUMNS: Final = ("type", "layers", "parameters", "macs", "bytes", "calls", "share")
FILES: Final = (
    File(
        "layer_types.csv",
        "all layers of one type, or the own code of all modules of one type",
        figure_columns(LayerType, COLUMNS, "time"),
    ),
)


def files(document: Document) -> dict[str, Table]:
    """A row a type."""
    part = document.part(LayerTypes)
    if part is None:
        return {}
    events = own_events(document.events)
    return {"layer_types.csv": figure_table(part.rows, COLUMNS, "time", part.counters, events, document.metrics)}
