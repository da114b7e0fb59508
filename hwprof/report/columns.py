"""The columns that stages, layers and layer types share: metrics, and the footnotes that explain them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hwprof.report import figures
from hwprof.report.figures import Glyphs
from hwprof.report.grid import Column
from hwprof.report.schema import Document, Figures, MetricInfo

PRIORITY: Final = {
    "gflops": 2,
    "cpi": 3,
    "cache_mpki": 5,
    "cpus_used": 6,
    "frequency": 8,
    "branch_mpki": 9,
    "intensity": 10,
    "gbytes": 11,
    "page_faults": 12,
    "balance": 14,
}
"""Which metric a narrow terminal shows first; those not named come after."""

LAST: Final = 20
MISSING: Final = 40
HOLE: Final = "cpi"
"""The metric that is shown as a dash even where there is little room: a reader must see that counters are missing."""

FOLLOWED: Final = ("instrumented", "simulated")
FULL: Final = 0.999
"""From this share of running time on, a counter counts as not multiplexed."""


def metric_columns(
    rows: Sequence[Figures | None], document: Document, glyphs: Glyphs, *, modelled: bool = True
) -> list[Column]:
    """One column a metric that this run has, and dashes for the core ones that it has not."""
    return [
        Column(
            header=metric.title + marks(metric, glyphs),
            cells=["" if row is None else _cell(row, metric, glyphs) for row in rows],
            priority=_priority(metric),
            key=metric.name,
        )
        for metric in document.metrics
        if (metric.core or metric.missing is None) and (modelled or metric.provenance != "modelled")
    ]


def _cell(row: Figures, metric: MetricInfo, glyphs: Glyphs) -> str:
    return figures.decimal(row.metrics.get(metric.name), metric.digits, glyphs)


def _priority(metric: MetricInfo) -> int:
    rank = PRIORITY.get(metric.name, LAST)
    return rank if metric.missing is None or metric.name == HOLE else rank + MISSING


def marks(metric: MetricInfo, glyphs: Glyphs) -> str:
    """What a header says of how far to trust the column."""
    return (
        (glyphs.modelled if metric.provenance == "modelled" else "")
        + (glyphs.followed if any(source in FOLLOWED for source in metric.sources) else "")
        + (glyphs.multiplexed if metric.missing is None and metric.running_share < FULL else "")
    )


def footnotes(shown: Sequence[Column], document: Document, glyphs: Glyphs) -> list[str]:
    """What the shown metric columns need said: reasons of dashes, provenance, multiplexing, meanings of events."""
    keys = {column.key for column in shown}
    metrics = [metric for metric in document.metrics if metric.name in keys]
    present = [metric for metric in metrics if metric.missing is None]
    notes = _missing(metrics, glyphs)
    if any(metric.provenance == "modelled" for metric in present):
        notes.append(
            f"{glyphs.modelled} modelled from shapes (2 FLOPs a multiply-accumulate), over measured time;"
            f" {glyphs.dash} where a layer has none"
        )
    followed = {source for metric in present for source in metric.sources if source in FOLLOWED}
    if followed:
        notes.append(
            f"{glyphs.followed} {figures.enumerate_words(sorted(followed))}, not measured by hardware counters"
        )
    used = {name for metric in present for name in event_names(metric, document)}
    shared = [event for event in document.events if event.name in used and event.running_share < FULL]
    if shared:
        parts = ", ".join(f"{event.name} {event.running_share:.0%}" for event in shared)
        notes.append(
            f"{glyphs.multiplexed} the kernel multiplexed: counters ran part of the time ({parts} at least),"
            " values are scaled up"
        )
    return notes + meanings(used, document)


def _missing(metrics: Sequence[MetricInfo], glyphs: Glyphs) -> list[str]:
    """One footnote a reason; where hardware counters are missing altogether that is one."""
    reasons: dict[tuple[str, str | None], list[str]] = {}
    for metric in metrics:
        if metric.missing is not None:
            reasons.setdefault((metric.missing.reason, metric.missing.remedy), []).append(metric.title)
    return [
        f"{glyphs.dash} not measured: {', '.join(titles)}: {reason}" + (f". Remedy: {remedy}" if remedy else "")
        for (reason, remedy), titles in reasons.items()
    ]


def event_names(metric: MetricInfo, document: Document) -> list[str]:
    """The run's events that a metric is made of."""
    return [event.name for event in document.events if f'"{event.name}' in metric.formula]


def meanings(names: set[str], document: Document) -> list[str]:
    """What the names of hardware events stand for on that machine."""
    return [
        f"{event.name}: {event.meaning}"
        for event in document.events
        if event.name in names and event.kind == "hardware" and event.meaning
    ]
