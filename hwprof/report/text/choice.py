"""Which metrics the tables show: the usual ones, or those that were asked for."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from functools import cache
from typing import Final

from hwprof.analysis.reasons import Missing
from hwprof.errors import UsageError
from hwprof.hardware.metrics import MetricFacts, facts, vocabulary
from hwprof.report.document.document import Document
from hwprof.report.document.layers import Layers
from hwprof.report.document.metrics import MetricInfo

ALL: Final = "all"

AFTER_CHOSEN: Final = 1000
"""What is not a metric comes after the metrics that were asked for."""

FIRST: Final = 0
"""Always shown."""

LAST: Final = 20
"""The place of metrics that ``metrics.toml`` gives none, and (behind all others) of those that are missing."""

MISSING: Final = 40

NEAR: Final = 3
"""How many names stand in the place of one that there is not."""

LAYERS: Final = "layers"
"""The section of metrics that stand in the tables of layers, stages and layer types."""

FLOATS: Final = "counted_gflops"
INTEGERS: Final = "int8_gops"
"""Which of them stands in the tables by itself, where instrumented code counted both: the one that there is more of."""

NOT_BY_HARDWARE: Final = ("instrumented", "simulated")
"""Provenances of what instrumented code counted, which has a section of its own."""


def expand(items: Sequence[str], document: Document) -> list[str]:
    """The metrics of these names and groups, each once, in the order given; ``all``: every group of this run.

    Of a group, those that were measured; where none was, all of them, so that their reasons are shown. Raises
    ``UsageError`` for a name that is neither, and for no name at all.
    """
    if not items:
        raise UsageError("--metrics names no metric", "hwprof report --metrics cpi,cache")
    found: dict[str, None] = {}
    names = {metric.name for metric in document.metrics}
    others = [unmeasured(metric, document) for metric in facts().values() if metric.name not in names]
    for item in items:
        members = _members(item, document.metrics) or _members(item, others)
        if not members:
            known = [name for metric in (*document.metrics, *others) for name in (metric.group, metric.name)]
            near = difflib.get_close_matches(item, dict.fromkeys(known), n=NEAR)
            groups = dict.fromkeys(metric.group for metric in document.metrics)
            hint = f"{', '.join(near)}; " if near else ""
            raise UsageError(
                f"there is no metric or group {item!r}",
                f"{hint}groups of this run: {', '.join(groups)}; metrics: hwprof explain --list",
            )
        found |= dict.fromkeys(members)
    return list(found)


def _members(item: str, metrics: Sequence[MetricInfo]) -> list[str]:
    """Of a group what was measured, else all of it; or the metric of that name."""
    group = [metric for metric in metrics if item in (metric.group, ALL)]
    measured = [metric for metric in group if metric.missing is None]
    one = [metric for metric in metrics if metric.name == item]
    return [metric.name for metric in measured or group or one]


def unmeasured(metric: MetricFacts, document: Document) -> MetricInfo:
    """What stands in the place of a metric that the run says nothing of: nobody looked for its events. Where there
    are no counters, their events are no remedy."""
    reason = "none of its events was counted in this run"
    brings = f"collect with {metric.option}" if metric.option is not None else None
    if document.machine.has_core_pmu or brings is None:
        brings = f"hwprof events {metric.group}{f', or {brings}' if brings else ''}"
    return MetricInfo(
        name=metric.name,
        title=metric.title,
        unit=metric.unit,
        formula="",
        group=metric.group,
        meaning=metric.meaning or metric.title,
        caveat=None,
        reference=None,
        digits=metric.digits,
        core=False,
        scope="threads",
        provenance="derived",
        sources=[],
        running_share=1.0,
        same_iterations=True,
        missing=Missing(reason, brings, what=metric.name),
    )


def choose(document: Document, wanted: Sequence[str] | None) -> list[tuple[MetricInfo, int]]:
    """The metrics to show, in order, each with its priority; what the layers are sorted by first. ``wanted``: exactly
    these, in this order of priority."""
    if wanted is not None:
        by_name = {metric.name: metric for metric in document.metrics}
        found = [by_name.get(name) or unmeasured(facts()[name], document) for name in wanted]
        return [(metric, 1 + number) for number, metric in enumerate(found)]
    shown = _defaults()
    if integers_prevail(document):
        shown = shown - {FLOATS} | {INTEGERS}
    sort = document.hottest.sort
    usual = [
        metric
        for metric in document.metrics
        if metric.name == sort
        or (
            (metric.core or metric.missing is None)
            and section(metric.name) == LAYERS
            and (metric.name in shown or not is_instrumented(metric))
        )
    ]
    return [(metric, FIRST if metric.name == sort else _priority(metric)) for metric in _paired(usual)]


def integers_prevail(document: Document) -> bool:
    """Whether the whole executes more operations of integer products than of floating point, as instrumented code
    counted both."""
    layers = document.part(Layers)
    figures = layers.whole.metrics if layers is not None and layers.whole is not None else {}
    return (figures.get(INTEGERS) or 0.0) > (figures.get(FLOATS) or 0.0)


def section(metric: str) -> str:
    """The section that shows a metric."""
    known = facts().get(metric)
    return known.section if known is not None else LAYERS


def is_behind(metric: str, shown: str) -> bool:
    """Whether a metric is to be compared with another one, and stands behind it."""
    known = facts().get(metric)
    return known is not None and known.behind == shown


def says_the_same(metric: str, shown: Collection[str]) -> bool:
    """Whether one of the ``shown`` metrics tells as much: IPC beside CPI."""
    known = facts().get(metric)
    return known is not None and known.inverse_of in shown


def is_instrumented(metric: MetricInfo) -> bool:
    """Whether instrumented code counted it, all or in part."""
    return any(source in NOT_BY_HARDWARE for source in metric.sources)


@cache
def _defaults() -> frozenset[str]:
    """What hardware counters count unless the user asks for others."""
    return frozenset(metric.name for metric in vocabulary() if metric.default or metric.core)


def _priority(metric: MetricInfo) -> int:
    known = facts().get(metric.name)
    rank = LAST if known is None or known.narrow is None else known.narrow
    return rank if metric.missing is None else rank + MISSING


def _paired(metrics: list[MetricInfo]) -> list[MetricInfo]:
    """In order, but a metric that is to be compared with another one stands right behind it."""
    names = {metric.name for metric in metrics}
    behind = {second: first for second in names for first in names if is_behind(second, first)}
    by_name = {metric.name: metric for metric in metrics}
    ordered = []
    for metric in metrics:
        if metric.name not in behind:
            ordered += [metric, *(by_name[second] for second, first in behind.items() if first == metric.name)]
    return ordered
