"""The page of operators: the tree of modules and operators, down to what matters."""

from __future__ import annotations

from typing import Final

import msgspec

from hwprof.errors import HwprofError
from hwprof.report.document.document import Document
from hwprof.report.document.operators import OperatorNode, Operators

LEAST_SHARE: Final = 0.005
"""Nodes with less of the time are not shown, nor what is below them."""


class HotOperators(msgspec.Struct, kw_only=True, frozen=True):
    """What ``hwprof report --operators`` shows."""

    run: str
    tree: list[OperatorNode]
    left_out: int  # nodes with too little time
    files: tuple[str, ...] = ()  # the tool's own, relative to the run's folder


PAGE: Final = HotOperators


def select(document: Document, top: int) -> HotOperators:
    """Nodes with ``LEAST_SHARE``; of one parent the ``top`` most. Raises ``HwprofError`` where none were recorded."""
    found = document.part(Operators)
    if found is None or not found.tree:
        why = document.absent.get("operators")
        raise HwprofError("no operators were recorded in this run", why.remedy if why is not None else None)
    shown: set[int | None] = {None}
    taken: dict[int | None, int] = {}
    rows = []
    for row in found.tree:
        if row.parent in shown and (row.share or 0) >= LEAST_SHARE and taken.get(row.parent, 0) < top:
            taken[row.parent] = taken.get(row.parent, 0) + 1
            shown.add(row.node)
            rows.append(row)
    return HotOperators(run=document.run.name, tree=rows, left_out=len(found.tree) - len(rows), files=found.files)
