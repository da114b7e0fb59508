"""Which metrics the tables show: the usual ones, or those that were asked for."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from functools import cache
from typing import Final

from hwprof.errors import HwprofError, UsageError
from hwprof.hardware.metrics import facts, vocabulary
from hwprof.report.document.document import Document
from hwprof.report.document.metrics import MetricInfo

ALL: Final = "all"

AFTER_CHOSEN: Final = 1000
"""What is not a metric comes after the metrics that were asked for."""

LAST: Final = 20
"""The place of metrics that ``metrics.toml`` gives none, and (behind all others) of those that are missing."""

MISSING: Final = 40

LAYERS: Final = "layers"
"""The section of metrics that stand in the tables of layers, stages and layer types."""

NOT_BY_HARDWARE: Final = ("instrumented", "simulated")
"""Provenances of what instrumented code counted, which has a section of its own."""


def expand(items: Sequence[str], document: Document) -> list[str]:
    """The metrics of these names and groups, each once, in the order given; ``all``: every group.

    Of a group, those that were measured; where none was, all of them, so that their reasons are shown. Raises
    ``UsageError`` for a name that is neither, ``HwprofError`` for one of which this run has nothing.
    """
    found: dict[str, None] = {}
    groups = dict.fromkeys(metric.group for metric in document.metrics)
    names = [metric.name for metric in document.metrics]
    for item in items:
        group = [metric for metric in document.metrics if item in (metric.group, ALL)]
        measured = [metric.name for metric in group if metric.missing is None]
        members = measured or [metric.name for metric in group] or [name for name in names if name == item]
        if not members and any(item in (metric.name, metric.group) for metric in vocabulary()):
            raise HwprofError(
                f"{item} was not measured in this run: none of its events was counted",
                f"hwprof events {item}",
            )
        if not members:
            near = difflib.get_close_matches(item, [*groups, *names], n=1)
            hint = f"{near[0]}; " if near else ""
            raise UsageError(
                f"there is no metric or group {item!r} in this run",
                f"{hint}groups: {', '.join(groups)}; metrics: hwprof explain --list",
            )
        found |= dict.fromkeys(members)
    return list(found)


def choose(document: Document, wanted: Sequence[str] | None) -> list[tuple[MetricInfo, int]]:
    """The metrics to show, in order, each with its priority. ``wanted``: exactly these, in this order of priority."""
    if wanted is not None:
        by_name = {metric.name: metric for metric in document.metrics}
        return [(by_name[name], 1 + number) for number, name in enumerate(wanted)]
    usual = [
        metric
        for metric in document.metrics
        if (metric.core or metric.missing is None)
        and section(metric.name) == LAYERS
        and (metric.name in _defaults() or not is_instrumented(metric))
    ]
    return [(metric, _priority(metric)) for metric in _paired(usual)]


def section(metric: str) -> str:
    """The section that shows a metric."""
    known = facts().get(metric)
    return known.section if known is not None else LAYERS


def is_behind(metric: str, shown: str) -> bool:
    """Whether a metric is to be compared with another one, and stands behind it."""
    known = facts().get(metric)
    return known is not None and known.behind == shown


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
