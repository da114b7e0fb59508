"""From dumps and the spans between them to rows of ``counts`` and ``kernels``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import polars as pl

from collectors.callgrind.edges import Edges, innermost
from collectors.callgrind.events import Event, counted
from collectors.callgrind.names import KernelMap, kernel_and_module
from collectors.callgrind.profile import Part
from hwprof.run.schema import empty
from hwprof.session.collector import CountedSpan


class Tables:
    """Takes the parts of a pass one by one; holds what belongs to spans only."""

    def __init__(self, edges: Edges, kernels: KernelMap) -> None:
        self._edges = edges
        self._kernels = kernels
        self._owners = innermost(edges.spans, edges.count - 1)
        self._totals: dict[int, list[int]] = {}  # by part
        self._by_kernel: dict[tuple[CountedSpan, str, str], list[int]] = defaultdict(list)
        self.columns: tuple[str, ...] = ()

    def take(self, parts: Iterable[Part]) -> None:
        """Adds parts; those beyond the last edge belong to nobody."""
        for part in parts:
            self.columns = part.events
            if part.number > len(self._owners):
                continue
            self._totals[part.number] = part.total
            owner = self._owners[part.number - 1]
            if owner is not None:
                for function, costs in part.costs.items():
                    key = (owner, *kernel_and_module(function, self._kernels))
                    self._by_kernel[key] = _added(self._by_kernel[key], costs)

    @property
    def missing_parts(self) -> int:
        """How many dumps there should be beside those that were read."""
        return len(self._owners) - len(self._totals)

    @property
    def events(self) -> list[Event]:
        """What the parts tell."""
        return counted(self.columns)

    def counts(self) -> pl.DataFrame:
        """Rows of ``counts``, without ``pass``: every event of every span all of whose parts were read."""
        rows = []
        for span in self._edges.spans:
            parts = range(span.begin_edge + 1, span.end_edge + 1)
            if all(part in self._totals for part in parts):
                total: list[int] = [0] * len(self.columns)
                for part in parts:
                    total = _added(total, self._totals[part])
                rows += [(span.iteration, span.span, *row) for row in self._values(total)]
        names = ["iteration", "span", "event", "value", "provenance"]
        return _frame("counts", rows, names, self._edges.tid).with_columns(
            enabled_ns=pl.lit(0, pl.Int64), running_ns=pl.lit(0, pl.Int64)
        )

    def kernels(self) -> pl.DataFrame:
        """Rows of ``kernels``, without ``pass``; no zeros."""
        rows = [
            (span.iteration, span.span, kernel, module, *row)
            for (span, kernel, module), costs in self._by_kernel.items()
            for row in self._values(costs)
            if row[1]
        ]
        names = ["iteration", "span", "kernel", "module", "event", "value", "provenance"]
        return _frame("kernels", rows, names, self._edges.tid)

    def _values(self, amounts: Sequence[int]) -> list[tuple[str, int, str]]:
        return [
            (event.name, sum(amounts[self.columns.index(column)] for column in event.sum), event.provenance)
            for event in self.events
        ]


def _added(left: list[int], right: Sequence[int]) -> list[int]:
    return [a + b for a, b in zip(left, right, strict=True)] if left else list(right)


def _frame(table: str, rows: Sequence[tuple[object, ...]], names: Sequence[str], tid: int) -> pl.DataFrame:
    schema = empty(table).schema
    frame = pl.DataFrame(rows, schema={name: schema[name] for name in names}, orient="row")
    return frame.with_columns(tid=pl.lit(tid, pl.Int32))
