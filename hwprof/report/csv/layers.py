"""``layers.csv``: the leaf layers, modules' own code, what no module owns, and the whole."""

from __future__ import annotations

from typing import Final

from hwprof.report.csv.figures import figure_columns, figure_table, own_events
from hwprof.report.csv.table import Field, File, Table, fields_of
from hwprof.report.document.document import Document
from hwprof.report.document.flops import FlopCheck
from hwprof.report.document.layers import Layer, Layers

COLUMNS: Final = (
    "order", "index", "path", "own", "type", "input_shapes", "output_shapes", "more_shapes", "parameters", "macs",
    "bytes", "calls", "share",
)  # fmt: skip
FLOPS: Final = tuple(name for name in fields_of(FlopCheck) if name != "expected")
FILES: Final = (
    File(
        "layers.csv",
        "a leaf layer, or a module's own code; then what no module owns, then the whole",
        {**figure_columns(Layer, COLUMNS, "time"), **{f"flops_{name}": Field(FlopCheck, name) for name in FLOPS}},
    ),
)


def files(document: Document) -> dict[str, Table]:
    """A row a layer."""
    part = document.part(Layers)
    if part is None:
        return {}
    events = own_events(document.events)
    table = figure_table(part.every, COLUMNS, "time", part.counters, events, document.metrics)
    flops = {f"flops_{name}": [getattr(row.flops, name, None) for row in part.every] for name in FLOPS}
    return {"layers.csv": Table({**table.columns, **flops})}
