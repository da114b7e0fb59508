"""``time_budget.csv``: the parts of the time of the inference, of each layer and of each block."""

from __future__ import annotations

from typing import Final

from hwprof.report.csv.table import Columns, Field, File, Table, table_of
from hwprof.report.document.document import Document
from hwprof.report.document.time_budget import BudgetPart, TimeBudget

FILE: Final = "time_budget.csv"

OF_PARTS: Final = {
    "part": Field(BudgetPart, "part"),
    "time_ns": Field(BudgetPart, "ns"),
    "share_ratio": Field(BudgetPart, "share"),
    "share_low_ratio": Field(BudgetPart, "share_low"),
    "share_high_ratio": Field(BudgetPart, "share_high"),
    "samples": Field(BudgetPart, "samples"),
    "threads_time_ns": Field(BudgetPart, "threads_ns"),
    "threads_share_ratio": Field(BudgetPart, "threads_share"),
}
COLUMNS: Final[Columns] = {
    "what": "inference, layer, block, or alike: all layers together that are alike",
    "layer": "none: the inference; of those that are alike: the one that takes longest",
    **OF_PARTS,
}
FILES: Final = (
    File(FILE, "a part of the time of the inference, of a layer, of a block, or of layers that are alike", COLUMNS),
)


def files(document: Document) -> dict[str, Table]:
    """A row a part."""
    part = document.part(TimeBudget)
    if part is None:
        return {}
    kinds = (("inference", [part.whole]), ("layer", part.layers), ("block", part.blocks), ("alike", part.alike))
    rows = [(what, budget.path, one) for what, budgets in kinds for budget in budgets for one in budget.parts]
    parts = table_of((one for *_, one in rows), OF_PARTS).columns
    return {FILE: Table({"what": [what for what, *_ in rows], "layer": [path for _, path, _ in rows], **parts})}
