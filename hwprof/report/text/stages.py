"""The section on the pipeline's stages."""

from __future__ import annotations

from hwprof.report.document.stages import Stage, Stages
from hwprof.report.text import columns, figures
from hwprof.report.text.grid import Column
from hwprof.report.text.page import Page


def show(page: Page) -> None:
    """The stages table."""
    part = page.part(Stages)
    if part is None:
        return
    rows = part.rows
    counted = {name for event in part.counters.events for name in part.counters.values(event)}
    calls = [row.call for row in rows]
    dash = page.glyphs.dash

    def times(name: str) -> list[str]:
        found = [getattr(call, name, None) for call in calls]
        return ["" if call is None else dash if ns is None else figures.milliseconds(ns)
                for call, ns in zip(calls, found, strict=True)]  # fmt: skip

    page.table(
        [
            Column("stage", [_stage_name(row) for row in rows], right=False, least=12),
            Column("calls", ["" if row.calls is None else str(row.calls) for row in rows], 1),
            Column("total ms", [figures.milliseconds(row.total_ns) for row in rows]),
            Column("mean ms", times("mean_ns")),
            Column("std", times("std_ns"), 1),
            Column("min", times("min_ns"), 1),
            Column("max", times("max_ns"), 1),
            Column("share", [figures.percent(row.share, page.glyphs) for row in rows]),
            *columns.metric_columns([row if row.name in counted else None for row in rows], page, modelled=False),
        ],
        "Stages",
    )
    page.notes(["share: of the iterations' time; an indented stage is part of the one above"])


def _stage_name(stage: Stage) -> str:
    return f"  {stage.name}" if stage.inside else stage.name
