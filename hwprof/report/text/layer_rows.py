"""The rows of the table of layers: the hottest ones, below modules' own code the operators in it, and what is left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hwprof.report.document.kernels import Kernels
from hwprof.report.document.layers import Layer
from hwprof.report.document.operators import LayerOperator, Operators
from hwprof.report.document.threads import Threads
from hwprof.report.text import figures
from hwprof.report.text.page import Page
from hwprof.run.passes import TRACE

MOST: Final = 3
"""Operators below one row; ``hwprof report --layer`` shows all that are known."""

LEAST_SHARE: Final = 0.1
"""Of the row's time."""

INDENT: Final = "  "

OF_TORCH: Final = "aten::"
"""Before the names of its own operators; among layers there is no room for it."""

APART: Final = 1.5
"""So much longer or shorter than in the measure pass a layer is another one in the trace pass."""

NO_OPERATOR: Final = "outside of operators"


@dataclass(frozen=True)
class Row:
    """``layer``: None of an operator, and of the other layers together."""

    name: str
    calls: str
    layer: Layer | None = None
    share: float | None = None
    operator: bool = False


def hottest(page: Page) -> list[Row]:
    """The layers that the report is about, and below those that are own code the operators that take most of it."""
    rows = []
    for layer in page.hottest():
        rows.append(_of(layer, page))
        found = operators_of(layer.path, page) if layer.own else []
        rows += [_operator(one, page) for one in found[:MOST] if one.share >= LEAST_SHARE]
    return rows


def rest(page: Page) -> list[Layer]:
    """The layers with a time that have no row."""
    shown = set(page.document.hottest.layers)
    return [layer for layer in page.layers if layer.path not in shown and layer.time is not None]


def sums(page: Page) -> list[Row]:
    """What all other layers have together, what no layer owns, and the whole."""
    others = rest(page)
    together = sum(layer.share or 0 for layer in others)
    return [
        *([Row(figures.plural(len(others), "other layer"), "", share=together)] if others else []),
        *(_of(layer, page) for layer in (page.unattributed, page.whole) if layer is not None),
    ]


def elsewhere(layers: Sequence[Layer], page: Page) -> str:
    """Which of these layers took another time in the trace pass, where samples are of that."""
    apart = {one.path: ratio for one in layers if (ratio := sampled_ratio(one, page)) is not None}
    names = sorted(apart, key=lambda path: -abs(math.log(apart[path])))
    said = [f"{path} {figures.times_as_long(apart[path], page.glyphs)}" for path in names]
    return f"pass trace took another time than the tables of layers have: {figures.some(said, 3)}" if said else ""


def sampled_ratio(layer: Layer, page: Page) -> float | None:
    """Its time in the trace pass over that in the table of layers, where kernels and threads are of that pass and it
    saw another layer than times and counts are of: page faults more or less, a neighbour."""
    sampled, ratio = page.part(Kernels), _ratio_of_threads(layer, page) or layer.trace_ratio
    if sampled is None or sampled.pass_name != TRACE or not ratio or 1 / APART < ratio < APART:
        return None
    return ratio


def _ratio_of_threads(layer: Layer, page: Page) -> float | None:
    """By what is printed: the mean over the sampled iterations, disturbed ones as well, over the table's time."""
    threads = page.part(Threads)
    row = next((one for one in threads.layers if one.path == layer.path), None) if threads is not None else None
    if row is None or layer.time is None or not layer.time.median_ns:
        return None
    return row.elapsed_ns / layer.time.median_ns


def operators_of(path: str, page: Page) -> list[LayerOperator]:
    """What a layer's time in the trace pass was, most first; nothing where no operator is known of it."""
    part = page.part(Operators)
    found = [one for one in part.by_layer if one.layer == path] if part is not None else []
    return found if any(one.operator is not None for one in found) else []


def _of(layer: Layer, page: Page) -> Row:
    name = page.document.whole if layer is page.whole else layer.path
    return Row(name, figures.calls(layer.calls, page.glyphs), layer, layer.share)


def _operator(one: LayerOperator, page: Page) -> Row:
    calls = "" if one.calls is None else figures.calls(one.calls, page.glyphs)
    name = (one.operator or NO_OPERATOR).removeprefix(OF_TORCH)
    return Row(f"{INDENT}{one.share:.0%} {name}", calls, operator=True)
