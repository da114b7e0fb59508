"""Layers that are alike have one row on the first screen: twelve equal blocks are not twelve things to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Final, NamedTuple

from hwprof.report.document.layers import Layer, Layers
from hwprof.report.text.page import Page

TIME: Final = "time"


class Alike(NamedTuple):
    """Of the document's ``layers.alike``, or a layer by itself; longest first."""

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
    rows = _rows(page)
    rows = [row for row in rows if any(map(_took, row.layers))] or rows  # what was never called has nothing to tell
    return sorted(rows, key=lambda row: -sum(map(_took, row.layers)))[: len(chosen.layers)]


def _rows(page: Page) -> list[Alike]:
    """Each group once, and the layers that are in none, in order of execution."""
    part = page.part(Layers)
    by_path = {layer.path: layer for layer in page.layers}
    group_of = {path: group for group in (part.alike if part is not None else ()) for path in group}
    groups = {paths[0]: paths for paths in (group_of.get(layer.path, [layer.path]) for layer in page.layers)}
    return [Alike([by_path[path] for path in paths]) for paths in groups.values()]


def _took(layer: Layer) -> float:
    return layer.share if layer.share is not None else layer.time.median_ns if layer.time is not None else 0.0


def mean(values: Iterable[float | None]) -> float | None:
    """Of a ratio of layers that do the same work; None where none is known."""
    known = [one for one in values if one is not None]
    return fmean(known) if known else None


def usual(values: Iterable[str | None]) -> str | None:
    """What most of them have; of as many the first."""
    counted = Counter(one for one in values if one is not None)
    return counted.most_common(1)[0][0] if counted else None
