"""From the log of a pass to its tables: every block gets its kernel's name, and all is added up by span and thread."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import polars as pl

from collectors.instrumented import cache_events
from collectors.instrumented.accounting import Sums, add_up, digest, merged, starts_of
from collectors.instrumented.cache_model import CacheModel
from collectors.instrumented.events import PROVENANCE, events
from collectors.instrumented.log import Integers, Log
from collectors.instrumented.span_counts import Counted, Event, count, count_kernels
from collectors.instrumented.spill import Spill
from collectors.shared import free_memory
from collectors.shared.symbols.domains import Domain
from collectors.shared.symbols.jit import Known, keep_perf_map
from collectors.shared.symbols.kernels import Kernel
from collectors.shared.symbols.process import resolver
from collectors.shared.symbols.tables import kernels_table
from hwprof.collector.contract import CountedSpan, PassContext
from hwprof.run.process_events import COUNTED_CPU_TIME, UNCOUNTED_CPU_TIME, WHOLE_PROCESS_TID

AT_ONCE: Final = 1024
"""Spans whose counts are made at a time: a hundred thousand rows, of two threads."""

MEASURED: Final = "measured"


@dataclass(frozen=True)
class Tally:
    """What was executed, as rows."""

    sums: Sums
    events: Sequence[Event]
    provenance: str


@dataclass(frozen=True)
class Tables:
    """What a complete log comes to.

    ``own_code``: where what counts lies. ``first_edge``: the log's edge that the spans' edge 0 is. ``progress``: the
    log's intervals in which progress was reported, which are nobody's.
    """

    log: Log
    context: PassContext
    own_code: tuple[int, int]
    first_edge: int
    progress: Sequence[int]
    caches: CacheModel | None

    def counts(self, spans: Sequence[CountedSpan]) -> pl.DataFrame:
        """The rows of the spans, without ``pass``: a row for each instrumented thread and event."""
        some = (spans[begin : begin + AT_ONCE] for begin in range(0, max(len(spans), 1), AT_ONCE))
        return pl.concat(frame.cast(self._names) for part in some for frame in self._counts(part))

    def _counts(self, spans: Sequence[CountedSpan]) -> Iterator[pl.DataFrame]:
        edges = np.array([(span.begin_edge, span.end_edge) for span in spans], dtype=np.int64).reshape(-1, 2)
        windows_ns = np.diff(self.log.times_ns[self._edges[edges]], axis=1)[:, 0]
        for tally in self._tallies:
            counted = count(tally.sums, spans, self._edges, tally.events, self.context.main_tid)
            window_ns = pl.Series(windows_ns[counted.span])
            frame = _frame(tally, spans, counted).with_columns(enabled_ns=window_ns, running_ns=window_ns)
            yield frame
        yield self._cpu_times(spans, self._edges[edges], windows_ns).select(frame.columns)

    def _cpu_times(self, spans: Sequence[CountedSpan], edges: Integers, windows_ns: Integers) -> pl.DataFrame:
        """Two rows a span: what the counted threads took, and the others; none where that is not known. ``edges``: of
        each span, in the log."""
        at_edges = self._cpu_times_ns[edges]  # spans, begin and end, process and uncounted
        known = (at_edges[:, :, 0] >= 0).all(axis=1)
        process_ns, uncounted_ns = np.diff(at_edges[known], axis=1)[:, 0].T
        of_spans = {
            "iteration": pl.Series([span.iteration for span in spans], dtype=pl.Int32).filter(pl.Series(known)),
            "span": pl.Series([span.span for span in spans], dtype=pl.Int64).filter(pl.Series(known)),
            "enabled_ns": windows_ns[known],
            "running_ns": windows_ns[known],
        }
        values = {COUNTED_CPU_TIME: process_ns - uncounted_ns, UNCOUNTED_CPU_TIME: np.maximum(uncounted_ns, 0)}
        return pl.concat(
            pl.DataFrame({**of_spans, "value": value}).with_columns(
                event=pl.lit(event),
                tid=pl.lit(WHOLE_PROCESS_TID, pl.Int32),
                provenance=pl.lit(MEASURED),
            )
            for event, value in values.items()
        )

    def kernels(self, spans: Sequence[CountedSpan]) -> dict[str, pl.DataFrame]:
        """The tables ``kernels``, ``kernel_counts`` and ``repeated_spans``, without ``pass``: what several spans did is
        counted of the first that was asked for."""
        like = [self._first.setdefault(self._steps_of(span), span.span) for span in spans]
        first = [span for span, other in zip(spans, like, strict=True) if span.span == other]
        again = [(span, other) for span, other in zip(spans, like, strict=True) if span.span != other]
        frames = [self._of_kernels(tally, first) for tally in self._tallies]
        repeated = pl.DataFrame(
            [(span.iteration, span.span, other) for span, other in again],
            schema={"iteration": pl.Int32, "span": pl.Int64, "like": pl.Int64},
            orient="row",
        )
        return {"kernels": self._kernels, "kernel_counts": pl.concat(frames), "repeated_spans": repeated}

    def _of_kernels(self, tally: Tally, spans: Sequence[CountedSpan]) -> pl.DataFrame:
        counted = count_kernels(tally.sums, spans, self._edges, tally.events)
        return _frame(tally, spans, counted).with_columns(kernel=pl.Series(counted.kernel).cast(pl.Int32))

    def _steps_of(self, span: CountedSpan) -> bytes:
        """What it did, as a digest."""
        begin, end = self._edges[span.begin_edge], self._edges[span.end_edge]
        steps = [tally.sums.steps[begin + 1 : end + 1] for tally in self._tallies]
        return digest(np.concatenate([np.sort(some) for some in steps]).tobytes())

    @cached_property
    def _first(self) -> dict[bytes, int]:
        """By what it did, the first span of those that did it."""
        return {}

    @cached_property
    def _kernels(self) -> pl.DataFrame:
        return kernels_table(self._tallies[0].sums.kernels)

    @cached_property
    def _cpu_times_ns(self) -> Integers:
        return without_peaks(self.log.cpu_times_ns)

    @cached_property
    def _edges(self) -> Integers:
        """For each edge of the spans its number in the log, which also has those that end progress."""
        return np.setdiff1d(np.arange(self.first_edge, self.log.edges), np.array(self.progress, dtype=np.int64))

    @cached_property
    def _names(self) -> pl.Schema:
        """The types of names that a million rows have: numbers."""
        events = [event.full_name for tally in self._tallies for event in tally.events]
        provenances = dict.fromkeys([*(tally.provenance for tally in self._tallies), MEASURED])
        names = {"event": [*events, COUNTED_CPU_TIME, UNCOUNTED_CPU_TIME], "provenance": [*provenances]}
        return pl.Schema({column: pl.Enum(texts) for column, texts in names.items()})

    @cached_property
    def _tallies(self) -> list[Tally]:
        """Names every block and adds them up."""
        own = Known(*self.own_code, Kernel(Domain.OWN, "hwprof", None))
        known = [own, *keep_perf_map(os.getpid(), self.context.raw)]
        numbers, found = resolver(os.getpid(), known).resolve(starts_of(self.log))
        becomes, kernels = merged(found)
        numbers = becomes[numbers]
        spill = Spill(self.context.raw)
        tallies = [Tally(add_up(self.log, numbers, kernels, self.progress, spill), events(), PROVENANCE)]
        if self.caches is not None:
            sums = self.caches.add_up(self.log, numbers, kernels, self.progress, spill)
            tallies.append(Tally(sums, self.caches.events(), cache_events.PROVENANCE))
        free_memory.give_back()
        return tallies


def without_peaks(cpu_times_ns: Integers) -> Integers:
    """The CPU times of a log, where of a single edge's uncounted time what is none at the next edge is none at all:
    between the threads' clocks and the process's, which is read last, who reads them may lose the processor, and what
    the threads do meanwhile is taken for nobody's until they are read again."""
    found = cpu_times_ns.copy()
    known = cpu_times_ns[:, 0] >= 0
    before, uncounted, after = cpu_times_ns[:-2, 1], cpu_times_ns[1:-1, 1], cpu_times_ns[2:, 1]
    peak = known[:-2] & known[1:-1] & known[2:] & (uncounted > np.maximum(before, after))
    found[1:-1, 1] = np.where(peak, np.maximum(before, after), uncounted)
    return found


def _frame(tally: Tally, spans: Sequence[CountedSpan], counted: Counted) -> pl.DataFrame:
    """The rows of a table of counts."""
    names = pl.Series("event", [event.full_name for event in tally.events], dtype=pl.String)
    numbers = np.array([(span.span, span.iteration) for span in spans], dtype=np.int64).reshape(-1, 2)
    tids = np.array(tally.sums.tids, dtype=np.int64)
    return pl.DataFrame(
        {
            "iteration": pl.Series(numbers[counted.span, 1]).cast(pl.Int32),
            "span": numbers[counted.span, 0],
            "tid": pl.Series(tids[counted.thread]).cast(pl.Int32),
            "event": names.gather(pl.Series(counted.event)),
            "value": counted.value,
        }
    ).with_columns(provenance=pl.lit(tally.provenance))
