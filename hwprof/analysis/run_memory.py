"""What several sections of a report need of a run's memory."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from hwprof.analysis import allocations, layer_memory, unwatched_threads
from hwprof.analysis.details import detail_of
from hwprof.analysis.iterations import select
from hwprof.run.details import AllocatorDetail, MemoryDetail
from hwprof.run.manifest import PassRecord
from hwprof.run.process_events import BEGUN_THREADS_CPU_TIME
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis


class MemoryFound(NamedTuple):
    """What is known of memory: ``tables`` are ``layer_memory.ROWS`` and ``allocations.MODULES``."""

    record: PassRecord
    tables: tuple[pl.DataFrame, pl.DataFrame] | Unavailable
    allocator: AllocatorDetail | None
    process: MemoryDetail | None


class Watched(NamedTuple):
    """The pass in which somebody watched what torch allocates, and what that comes to."""

    record: PassRecord
    allocations: tuple[pl.DataFrame, pl.DataFrame] | Unavailable  # as ``allocations.layer_allocations``


class MemoryAnalysis:
    """Made once for a run."""

    def __init__(self, analysis: RunAnalysis) -> None:
        self._analysis = analysis

    @cached_property
    def watched(self) -> Watched | None:
        """What torch allocated in the first pass in which somebody watched it."""
        watched = self._analysis.run.count_by_pass("allocations")
        record = next((record for name, record in self._analysis.records.items() if watched.get(name)), None)
        if record is None:
            return None
        timed = select(record.iterations, disturbed_too=True).timed  # what others take is time, not memory
        spans, events = self._analysis.of_pass("spans", record), self._analysis.of_pass("allocations", record)
        unwatched = self._unwatched(record, spans, events)
        modules = self._analysis.modules
        return Watched(record, allocations.layer_allocations(events, spans, modules, timed, unwatched))

    @cached_property
    def found(self) -> MemoryFound | None:
        """The same, beside the main pass's page faults."""
        if self.watched is None or self._analysis.figures is None:
            return None
        record, found = self.watched
        process, allocator = detail_of(MemoryDetail, self._analysis.main), detail_of(AllocatorDetail, record)
        if isinstance(found, Unavailable):
            return MemoryFound(record, found, allocator, process)
        metrics = self._analysis.figures.layers.metrics
        counted = pl.col("page_faults") if "page_faults" in metrics.columns else pl.lit(None, pl.Float64)
        faults = metrics.select(layer="owner", faults=counted)
        page_bytes = process.page_bytes if process is not None else None
        rows = layer_memory.layer_memory(found[0], faults, self._analysis.modules, page_bytes)
        return MemoryFound(record, (rows, found[1]), allocator, process)

    def _unwatched(self, record: PassRecord, spans: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
        """When threads were there whose allocations nobody sees."""
        watched = unwatched_threads.watched_threads(spans, events, record.main_tid)
        sampled = self._analysis.sampled_passes.get(record.name)
        lifetimes, frames = (self._analysis.of_pass(table, record) for table in ("lifetimes", "python_frames"))
        team = frozenset[int]()
        if sampled is not None:
            team = unwatched_threads.computing(sampled.team, sampled.switches, frames)
        begun = self._analysis.run.of_pass("counts", record.name, pl.col("event") == BEGUN_THREADS_CPU_TIME)
        return unwatched_threads.merged(
            unwatched_threads.of_begun(spans, lifetimes, begun, watched, team),
            unwatched_threads.of_calls(spans, watched),
            *([unwatched_threads.of_samples(sampled.taken, lifetimes, watched, team)] if sampled is not None else []),
        )
