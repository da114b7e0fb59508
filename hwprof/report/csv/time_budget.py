"""``time_budget.csv``: the parts of the time of the inference, of each layer and of each block."""

from __future__ import annotations

from typing import Final

from hwprof.report.csv.table import Table
from hwprof.report.document.document import Document
from hwprof.report.document.time_budget import TimeBudget

FILE: Final = "time_budget.csv"

COLUMNS: Final = (
    "what",  # "inference", "layer", "block", "alike": all layers together that are alike
    "layer",  # none: the inference; of those that are alike: the one that takes longest
    "part",
    "time_ns",  # of the elapsed time of an iteration
    "share_ratio",
    "share_low_ratio",
    "share_high_ratio",
    "samples",
    "threads_time_ns",  # of the time of all threads that share the work
    "threads_share_ratio",
)


def files(document: Document) -> dict[str, Table]:
    """A row a part."""
    part = document.part(TimeBudget)
    if part is None:
        return {}
    kinds = (("inference", [part.whole]), ("layer", part.layers), ("block", part.blocks), ("alike", part.alike))
    rows = [
        (
            what,
            budget.path,
            one.part,
            one.ns,
            one.share,
            one.share_low,
            one.share_high,
            one.samples,
            one.threads_ns,
            one.threads_share,
        )
        for what, budgets in kinds
        for budget in budgets
        for one in budget.parts
    ]
    return {FILE: Table({name: [row[place] for row in rows] for place, name in enumerate(COLUMNS)})}
