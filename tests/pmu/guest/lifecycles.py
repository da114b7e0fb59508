"""Edges and spans as the recorder makes them, around work of known length."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from collectors.perf.collector import PerfCollector
from hwprof.collector.contract import CountedSpan, PassContext
from tests.pmu.guest.loops import loop
from tests.support.reported import fields, texts

CORE = ["cycles", "instructions"]
INSTRUCTIONS = [f"armv8_pmuv3/event=0x8,name=again{number}/" for number in range(10)]
"""The same event under many names: each takes a counter, and all must count the same."""


def context(**options: Any) -> PassContext:
    return PassContext("measure", os.getpid(), threading.get_native_id(), Path(os.environ["OUT"]), options)


class Lifecycle:
    """Edges and spans as the recorder makes them."""

    def __init__(self, collector: PerfCollector) -> None:
        self.leave, self.gap, self.full = collector.leave_reader(), collector.gap_reader(), collector.full_reader()
        self.spans: list[CountedSpan] = []
        self.edges = 0
        self.iteration = 0

    def edge(self, read: Callable[[], None]) -> int:
        read()
        self.edges += 1
        return self.edges - 1

    def span(self, begin: int, end: int) -> int:
        self.spans.append(CountedSpan(len(self.spans), self.iteration, begin, end))
        return len(self.spans) - 1


def rows(collector: PerfCollector, spans: Sequence[CountedSpan]) -> list[dict[str, Any]]:
    return collector.counts(spans).to_dicts()


def counted_in_turn(collector: PerfCollector, turns: int, iterations: int | None = None) -> dict[str, Any]:
    """The loop once for each event set of a collector that has started, ``iterations`` times in all."""
    lifecycle = Lifecycle(collector)
    sets = [list(names) for names in collector.event_sets()]
    for iteration in range(len(sets) if iterations is None else iterations):
        lifecycle.iteration = iteration
        collector.begin_iteration(iteration % len(sets))
        first = lifecycle.edge(lifecycle.full)
        loop(turns)
        lifecycle.span(first, lifecycle.edge(lifecycle.full))
    stopped = collector.stop()
    return {
        "main": threading.get_native_id(),
        "event_sets": sets,
        "detail": fields(stopped.detail),
        "rows": rows(collector, lifecycle.spans),
        "notes": texts(stopped.notes),
    }
