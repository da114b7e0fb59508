"""``operators.csv``: operators by input shapes; ``layer_operators.csv``: those that each layer calls."""

from __future__ import annotations

from typing import Final

from hwprof.report.csv.table import File, Table, of_struct, table_of
from hwprof.report.document.document import Document
from hwprof.report.document.operators import LayerOperator, Operator, Operators

COLUMNS: Final = of_struct(Operator, {"share": "share_of_operators_ratio"})
OF_LAYERS: Final = of_struct(LayerOperator, {"share": "share_of_layer_ratio"})
FILES: Final = (
    File(
        "operators.csv",
        "an operator with one combination of input shapes, from 0.01% of all self time on (pass trace)",
        COLUMNS,
    ),
    File(
        "layer_operators.csv",
        "a layer, or a module's own code, and an operator that it calls (pass trace); no operator: what is outside of"
        " them",
        OF_LAYERS,
    ),
)


def files(document: Document) -> dict[str, Table]:
    """A row an operator with one combination of input shapes; a row a layer and operator."""
    part = document.part(Operators)
    if part is None:
        return {}
    return {
        "operators.csv": table_of(part.rows, COLUMNS),
        "layer_operators.csv": table_of(part.by_layer, OF_LAYERS),
    }
