"""``operators.csv``: operators by input shapes; ``layer_operators.csv``: those that each layer calls."""

from __future__ import annotations

from typing import Final

from hwprof.report.csv.table import Table, columns_of, fields_of
from hwprof.report.document.document import Document
from hwprof.report.document.operators import LayerOperator, Operator, Operators

SHARES: Final = {"share": "share_of_operators_ratio"}
SHARES_OF_LAYER: Final = {"share": "share_of_layer_ratio"}


def files(document: Document) -> dict[str, Table]:
    """A row an operator with one combination of input shapes; a row a layer and operator."""
    part = document.part(Operators)
    if part is None:
        return {}
    return {
        "operators.csv": columns_of(part.rows, fields_of(Operator), SHARES),
        "layer_operators.csv": columns_of(part.by_layer, fields_of(LayerOperator), SHARES_OF_LAYER),
    }
