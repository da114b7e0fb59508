"""Layers that are alike have one row on the first screen: twelve equal blocks are not twelve things to look at."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from statistics import fmean
from typing import Final, NamedTuple

from hwprof.report.document.layers import Layer
from hwprof.report.document.time_budget import Budget, BudgetPart
from hwprof.report.text.page import Page

NUMBER: Final = re.compile(r"\d+")
"""Of a block in a list of blocks, of a layer in a block: ``layers.3.conv2``."""

AS_LONG: Final = 1.5
"""Times as long as another one no layer takes that does the same: shapes do not tell the size of a window."""

TIME: Final = "time"


class Alike(NamedTuple):
    """Of names that differ in numbers alone, of one class, with the same shapes and work, and about the same time;
    longest first."""

    layers: Sequence[Layer]

    @property
    def path(self) -> str:
        """That of the one that takes longest."""
        return self.layers[0].path

    def time_ns(self, *, mean: bool = False) -> float | None:
        """Of all of them, in an iteration, the medians or the ``mean`` times; None where one was not timed."""
        known = [one.time for one in self.layers if one.time is not None]
        times = [time.mean_ns if mean else time.median_ns for time in known]
        return sum(times) if len(times) == len(self.layers) else None

    @property
    def share(self) -> float | None:
        """Of the whole: all of theirs."""
        known = [one.share for one in self.layers if one.share is not None]
        return sum(known) if known else None


def hottest(page: Page) -> list[Alike]:
    """As many as the report shows layers, by their time together; where it is sorted by something else, each layer is
    a row of its own."""
    chosen = page.document.hottest
    if chosen.sort != TIME:
        return [Alike([layer]) for layer in page.hottest()]
    groups: dict[Hashable, list[Layer]] = {}
    for layer in page.layers:
        groups.setdefault(_kind(layer), []).append(layer)
    rows = [row for group in groups.values() for row in _as_long(sorted(group, key=_took, reverse=True))]
    rows = [row for row in rows if any(map(_took, row.layers))] or rows  # what was never called has nothing to tell
    return sorted(rows, key=lambda row: -sum(map(_took, row.layers)))[: len(chosen.layers)]


def _as_long(layers: Sequence[Layer]) -> list[Alike]:
    """Of layers of one kind, longest first, those that take about as long together."""
    rows: list[list[Layer]] = []
    for layer in layers:
        if rows and _took(rows[-1][0]) <= AS_LONG * _took(layer):
            rows[-1].append(layer)
        else:
            rows.append([layer])
    return [Alike(row) for row in rows]


def _kind(layer: Layer) -> Hashable:
    if layer.input_shapes is None and not layer.own:
        return layer.path
    work = (layer.parameters, layer.macs, layer.bytes)
    return (NUMBER.sub("#", layer.path), layer.type, layer.input_shapes, layer.output_shapes, layer.more_shapes, work)


def _took(layer: Layer) -> float:
    return layer.share if layer.share is not None else layer.time.median_ns if layer.time is not None else 0.0


def merged(budgets: Sequence[Budget]) -> Budget | None:
    """What several layers spend together; without intervals. None: of nothing."""
    if len(budgets) < 2:
        return budgets[0] if budgets else None
    elapsed_ns = sum(one.elapsed_ns for one in budgets)
    threads_ns = sum(part.threads_ns for one in budgets for part in one.parts)
    parts = []
    for name in dict.fromkeys(part.part for one in budgets for part in one.parts):
        own = [part for one in budgets for part in one.parts if part.part == name]
        ns, of_threads_ns = sum(part.ns for part in own), sum(part.threads_ns for part in own)
        parts.append(
            BudgetPart(
                part=name,
                ns=ns,
                share=ns / elapsed_ns if elapsed_ns else 0.0,
                share_low=None,
                share_high=None,
                samples=sum(part.samples for part in own),
                threads_ns=of_threads_ns,
                threads_share=of_threads_ns / threads_ns if threads_ns else 0.0,
            )
        )
    return Budget(path=budgets[0].path, elapsed_ns=elapsed_ns, samples=sum(one.samples for one in budgets), parts=parts)


def mean(values: Iterable[float | None]) -> float | None:
    """Of a ratio of layers that do the same work; None where none is known."""
    known = [one for one in values if one is not None]
    return fmean(known) if known else None


def usual(values: Iterable[str | None]) -> str | None:
    """What most of them have; of as many the first."""
    counted = Counter(one for one in values if one is not None)
    return counted.most_common(1)[0][0] if counted else None
