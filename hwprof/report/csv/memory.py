"""``memory.csv``: what each layer allocates, keeps and gets anew, in an iteration."""

from __future__ import annotations

from typing import Final

from hwprof.report.csv.table import File, Table, of_struct, table_of
from hwprof.report.document.document import Document
from hwprof.report.document.memory import LayerMemory, Memory

COLUMNS: Final = of_struct(LayerMemory, {"fresh": "fresh_ratio", "faults": "page_faults"})
FILES: Final = (
    File(
        "memory.csv",
        "the whole, a layer, or a module's own code: what torch allocates, and page faults",
        COLUMNS,
    ),
)


def files(document: Document) -> dict[str, Table]:
    """A row a layer, and one for the whole."""
    part = document.part(Memory)
    if part is None or part.whole is None:
        return {}
    return {"memory.csv": table_of([part.whole, *part.rows], COLUMNS)}
