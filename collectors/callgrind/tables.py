"""From dumps and the spans between them to rows of ``counts``, ``kernels`` and ``kernel_counts``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import polars as pl

from collectors.callgrind.edges import Edges
from collectors.callgrind.events import Event, counted
from collectors.callgrind.profile import NO_FILE, Function, Part
from collectors.shared.symbols.domains import Domain, domain_of
from collectors.shared.symbols.kernels import UNKNOWN, UNKNOWN_LIBRARY, Kernel
from collectors.shared.symbols.resolver import Resolver, named
from collectors.shared.symbols.tables import kernels_table
from hwprof.collector.contract import CountedSpan
from hwprof.run.schema import empty


class Tables:
    """Takes the parts of a pass; holds what lies between edges only. ``jit``: names the code that is in no file."""

    def __init__(self, edges: Edges, jit: Resolver) -> None:
        self._edges = edges
        self._jit = jit
        self._parts: dict[int, dict[int, list[int]]] = {}  # by part: by kernel
        self._totals: dict[int, list[int]] = {}  # by part
        self._kernels: dict[Kernel, int] = {}
        self.columns: tuple[str, ...] = ()

    def take(self, parts: Iterable[Part]) -> None:
        """Adds parts; those beyond the last edge belong to nobody."""
        for part in parts:
            self.columns = part.events
            if part.number < self._edges.count:
                mine: dict[int, list[int]] = {}
                for function, costs in part.costs.items():
                    kernel = self._kernels.setdefault(kernel_of(function, self._jit), len(self._kernels))
                    mine[kernel] = _added(mine.get(kernel), costs)
                self._parts[part.number], self._totals[part.number] = mine, part.total

    @property
    def missing_parts(self) -> int:
        """How many dumps are missing."""
        return max(self._edges.count - 1, 0) - len(self._parts)

    @property
    def events(self) -> list[Event]:
        """What the parts hold."""
        return counted(self.columns)

    def counts(self) -> pl.DataFrame:
        """Rows of ``counts``, without ``pass``: every event of every span all of whose parts were read."""
        rows = []
        for span, parts in self._spans():
            total = [0] * len(self.columns)
            for part in parts:
                total = _added(total, self._totals[part])
            rows += [(span.iteration, span.span, *row) for row in self._values(total)]
        names = ["iteration", "span", "event", "value", "provenance"]
        return _frame("counts", rows, names, self._edges.tid).with_columns(
            enabled_ns=pl.lit(0, pl.Int64), running_ns=pl.lit(0, pl.Int64)
        )

    def kernels(self) -> pl.DataFrame:
        """Rows of ``kernels``, without ``pass``."""
        return kernels_table(list(self._kernels))

    def kernel_counts(self) -> pl.DataFrame:
        """Rows of ``kernel_counts``, without ``pass``: the same as ``counts``, by kernel."""
        rows = []
        for span, parts in self._spans():
            sums: dict[int, list[int]] = {}
            for part in parts:
                for kernel, costs in self._parts[part].items():
                    sums[kernel] = _added(sums.get(kernel), costs)
            rows += [
                (span.iteration, span.span, kernel, *row)
                for kernel, costs in sums.items()
                for row in self._values(costs)
                if row[1]
            ]
        names = ["iteration", "span", "kernel", "event", "value", "provenance"]
        return _frame("kernel_counts", rows, names, self._edges.tid)

    def _spans(self) -> Iterator[tuple[CountedSpan, range]]:
        """The spans all of whose parts were read."""
        for span in self._edges.spans:
            parts = range(span.begin_edge + 1, span.end_edge + 1)
            if all(part in self._parts for part in parts):
                yield span, parts

    def _values(self, amounts: Sequence[int]) -> list[tuple[str, int, str]]:
        return [
            (event.name, sum(amounts[self.columns.index(column)] for column in event.sum), event.provenance)
            for event in self.events
        ]


def kernel_of(function: Function, jit: Resolver) -> Kernel:
    """What a function is in the tables. One without a symbol is named by its address within its library."""
    address = int(function.name, 16) if function.name.startswith("0x") else None
    if function.file != NO_FILE:
        library, domain = Path(function.file).name, domain_of(function.file)
        if address is None:
            return named(domain, library, function.name)
        return Kernel(domain, library, f"{library}+{address:#x}")
    if address is None:
        return Kernel(Domain.OTHER, UNKNOWN_LIBRARY, function.name)
    found = jit.kernel_at(address)
    return found if found != UNKNOWN else Kernel(Domain.OTHER, UNKNOWN_LIBRARY, f"{address:#x}", None, address)


def _added(left: list[int] | None, right: Sequence[int]) -> list[int]:
    return [a + b for a, b in zip(left, right, strict=True)] if left else list(right)


def _frame(table: str, rows: Sequence[tuple[object, ...]], names: Sequence[str], tid: int) -> pl.DataFrame:
    schema = empty(table).schema
    frame = pl.DataFrame(rows, schema={name: schema[name] for name in names}, orient="row")
    return frame.with_columns(tid=pl.lit(tid, pl.Int32))
