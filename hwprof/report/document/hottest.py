"""The hottest layers: by what layers can be sorted, and the sorting."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from hwprof.errors import HwprofError, UsageError

if TYPE_CHECKING:
    from hwprof.report.document.layers import Layer, Layers
    from hwprof.report.document.metrics import Event, MetricInfo

ORDER: Final = "order"
"""That of execution."""

OWN: Final = ("time", "macs", "bytes", "parameters", "calls", ORDER)


class Hottest(msgspec.Struct, kw_only=True, frozen=True):
    """The layers that the terminal shows, by path."""

    sort: str
    top: int | None  # null: all
    layers: list[str]


def rank(part: Layers, sort: str, top: int | None, metrics: Sequence[MetricInfo], events: Sequence[Event]) -> list[str]:
    """The paths of the ``top`` layers by ``sort``: time, a static figure, a metric or an event; those without last. Of
    layers that were never called, while others were, there is nothing to rank.

    Raises ``UsageError`` for an unknown key, ``HwprofError`` for one that was not measured in this run.
    """
    refuse_unknown(sort, [*(metric.name for metric in metrics), *(event.name for event in events)])
    missing = next((metric.missing for metric in metrics if metric.name == sort), None)
    if missing is not None:
        raise HwprofError(f"cannot sort by {sort}: {missing.what} was not counted: {missing.reason}", missing.remedy)
    sign = 1 if sort == ORDER or lowest_first(sort) else -1
    known, layers = values(part, sort), part.rows
    figures = [(known.get(layer.path), number, layer.path) for number, layer in enumerate(layers)]
    ordered = sorted((sign * figure, number, path) for figure, number, path in figures if figure is not None)
    if not ordered and figures and sort not in OWN:
        raise HwprofError(f"cannot sort by {sort}: no layer has it", "hwprof report --all says why")
    called = {layer.path for layer in layers if layer.calls is not None} or {layer.path for layer in layers}
    rest = [path for figure, _, path in figures if figure is None and path in called]
    return ([path for _, _, path in ordered] + rest)[:top]


def key_of(sort: str, metrics: Sequence[MetricInfo]) -> str:
    """The key that is meant: a column's title, as the tables have it, is one too."""
    by_title = {metric.title.lower(): metric.name for metric in metrics}
    return by_title.get(sort.strip().lower(), sort)


def refuse_unknown(sort: str, names: Sequence[str]) -> None:
    """Raises ``UsageError`` for what is neither a layer's own figure nor one of these metrics and events."""
    known = [*OWN, *names]
    if sort not in known:
        near = difflib.get_close_matches(sort.lower(), known, n=3)
        hint = f"{', '.join(near)}; " if near else ""
        others = "or a metric or event of this run: hwprof report --format json names them"
        raise UsageError(f"cannot sort by {sort!r}", f"{hint}one of {', '.join(OWN)}, {others}")


def lowest_first(sort: str) -> bool:
    """Whether a reader looks for the layers that have least of it."""
    if sort in OWN:
        return False
    from hwprof.hardware.metrics import facts

    known = facts().get(sort)
    return known is not None and known.better == "larger"


def values(part: Layers, key: str) -> dict[str, float]:
    """The figures by a sort key, where known, by path: of layers, what no layer owns, and the whole."""
    if key not in OWN and key in part.counters.events:
        return part.counters.values(key)
    found = {layer.path: _value(layer, key) for layer in part.every}
    return {path: value for path, value in found.items() if value is not None}


def _value(layer: Layer, key: str) -> float | None:
    if key == "time":  # of an iteration: a layer that not every one calls takes less than when it is called
        return layer.share if layer.share is not None else layer.time.median_ns if layer.time else None
    if key in OWN:
        figure: float | None = getattr(layer, key)
        return figure
    return layer.metrics.get(key)
