"""``stages.csv``: the pipeline's stages."""

from __future__ import annotations

from typing import Final

from hwprof.report.csv.figures import figure_columns, figure_table, own_events
from hwprof.report.csv.table import File, Table
from hwprof.report.document.document import Document
from hwprof.report.document.stages import Stage, Stages

COLUMNS: Final = ("name", "inside", "calls", "total_ns", "share")
FILES: Final = (File("stages.csv", "a stage of the pipeline", figure_columns(Stage, COLUMNS, "call")),)


def files(document: Document) -> dict[str, Table]:
    """A row a stage."""
    part = document.part(Stages)
    if part is None:
        return {}
    events = own_events(document.events)
    return {"stages.csv": figure_table(part.rows, COLUMNS, "call", part.counters, events, document.metrics)}
