"""Which metrics the tables show: the usual ones, or those that were asked for."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from functools import cache
from typing import Final

from hwprof.errors import HwprofError, UsageError
from hwprof.hardware.metrics import vocabulary
from hwprof.report.document.schema import Document, MetricInfo

ALL: Final = "all"

PRIORITY: Final = {
    "cpi": 2,
    "gflops": 3,
    "counted_gflops": 4,
    "llc_mpki": 5,
    "cache_mpki": 5,
    "l2_mpki": 7,
    "memory_stalls": 8,
    "cpus_used": 9,
    "efficiency_core_share": 10,
    "frequency": 11,
    "branch_mpki": 12,
    "intensity": 13,
    "dram_gbytes": 14,
    "uncore_dram_gbytes": 14,
    "gbytes": 15,
    "page_faults": 16,
    "balance": 17,
}
"""Which metric a narrow terminal shows first; those not named come after."""

AFTER_CHOSEN: Final = 1000
"""What is not a metric comes after the metrics that were asked for."""

LAST: Final = 20
MISSING: Final = 40
HOLE: Final = "cpi"
"""The metric that is shown as a dash even where there is little room: a reader must see that counters are missing."""

ELSEWHERE: Final = ("topdown", "uncore_dram_read_gbytes", "uncore_dram_write_gbytes", "counted_flops")
"""Groups and metrics that have sections of their own."""

FOLLOWED: Final = ("instrumented", "simulated")
"""Provenances of what was counted by following the code, which has a section of its own."""

PAIRS: Final = {"counted_gflops": "gflops"}
"""Metrics that stand behind another one, to be compared with it."""


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
                f"{item} was not measured in this run: nothing was counted that tells it",
                f"hwprof events {item} shows whether the processor has such events",
            )
        if not members:
            near = difflib.get_close_matches(item, [*groups, *names], n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise UsageError(
                f"there is no metric or group {item!r} in this run",
                f"{hint}groups: {', '.join(groups)}; the metrics' names: hwprof report --format json",
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
        and not {metric.name, metric.group} & set(ELSEWHERE)
        and (metric.name in _defaults() or not is_followed(metric))
    ]
    return [(metric, _priority(metric)) for metric in _paired(usual)]


def is_followed(metric: MetricInfo) -> bool:
    """Whether it was counted by following the code, all or in part."""
    return any(source in FOLLOWED for source in metric.sources)


@cache
def _defaults() -> frozenset[str]:
    """What hardware counters count unless the user asks for others."""
    return frozenset(metric.name for metric in vocabulary() if metric.default or metric.core)


def _priority(metric: MetricInfo) -> int:
    rank = PRIORITY.get(metric.name, LAST)
    return rank if metric.missing is None or metric.name == HOLE else rank + MISSING


def _paired(metrics: list[MetricInfo]) -> list[MetricInfo]:
    """In order, but a metric that is to be compared with another one stands right behind it."""
    names = {metric.name for metric in metrics}
    behind = {second: first for second, first in PAIRS.items() if {second, first} <= names}
    by_name = {metric.name: metric for metric in metrics}
    ordered = []
    for metric in metrics:
        if metric.name not in behind:
            ordered += [metric, *(by_name[second] for second, first in behind.items() if first == metric.name)]
    return ordered
