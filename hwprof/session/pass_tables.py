"""How the rows of the recorder and of the collectors become the tables of a pass."""

from __future__ import annotations

import os
from collections.abc import Mapping

import polars as pl

from hwprof.collector.contract import Collected, Collector, counts_at_edges
from hwprof.run.manifest import PassRecord
from hwprof.run.notes import Note, NoteKind
from hwprof.run.schema import COUNTED_WINDOW, PROCESS_CPU_TIME, WHOLE_PROCESS_TID
from hwprof.session.in_process import RunningCollectors
from hwprof.session.plan import uncounted_notes
from hwprof.session.recorder import SpanRecorder
from hwprof.session.results import PassResults


def gather(
    record: PassRecord,
    recorder: SpanRecorder,
    collectors: RunningCollectors,
    collected: Mapping[str, Collected],
    cpu_times: Mapping[int, int],
) -> dict[str, pl.DataFrame]:
    """Brings all rows together, with ``pass`` filled in; completes the pass's record.

    ``cpu_times`` is the process's CPU time of each iteration in nanoseconds.
    """
    spans = recorder.table(os.getpid())
    results = PassResults(record, lambda: spans)
    results.add("spans", spans)
    results.add("counts", _process_cpu_time(spans, cpu_times))
    results.add("counts", _windows(recorder))
    for name, result in collected.items():
        with collectors.guard(name):
            _count(collectors.running[name], result, record, recorder)
            results.keep(collectors.plans[name], result)
    record.collectors += collectors.records
    return results.tables()


def _count(collector: Collector, result: Collected, record: PassRecord, recorder: SpanRecorder) -> None:
    """What a counter's edges come to is added to its result."""
    if not counts_at_edges(collector) or not isinstance(result, Collected):
        return  # what is no result, ``keep`` says
    result.notes += uncounted_notes(record.name, record.iterations, collector.event_sets())
    if recorder.calling_threads() > 1:
        text = "layers that overlap in time share their counts"
        result.notes.append(Note(NoteKind.SUSPECT, text, f"layers called from {recorder.calling_threads()} threads"))
    spans = recorder.counted_spans()
    result.tables = {**result.tables, **collector.kernel_tables(spans), "counts": collector.counts(spans)}


def _windows(recorder: SpanRecorder) -> pl.DataFrame:
    """The counts rows that say how long each span was counted for, with the columns that a counter gives."""
    spans, windows = recorder.counted_spans(), recorder.windows_ns()
    return pl.DataFrame(
        {
            "iteration": pl.Series([span.iteration for span in spans], dtype=pl.Int32),
            "span": pl.Series([span.span for span in spans], dtype=pl.Int64),
            "tid": pl.Series([WHOLE_PROCESS_TID] * len(spans), dtype=pl.Int32),
            "event": pl.Series([COUNTED_WINDOW] * len(spans), dtype=pl.String),
            "value": pl.Series(windows, dtype=pl.Int64),
            "enabled_ns": pl.Series(windows, dtype=pl.Int64),
            "running_ns": pl.Series(windows, dtype=pl.Int64),
            "provenance": pl.Series(["measured"] * len(spans), dtype=pl.String),
        }
    )


def _process_cpu_time(spans: pl.DataFrame, cpu_times: Mapping[int, int]) -> pl.DataFrame:
    """The counts rows of the whole process: one an iteration."""
    iterations = spans.filter((pl.col("kind") == "iteration") & pl.col("iteration").is_in(list(cpu_times)))
    duration_ns = pl.col("end_ns") - pl.col("begin_ns")
    return iterations.select(
        "iteration",
        "span",
        tid=pl.lit(WHOLE_PROCESS_TID),
        event=pl.lit(PROCESS_CPU_TIME),
        value=pl.Series([cpu_times[index] for index in iterations["iteration"]], dtype=pl.Int64),
        enabled_ns=duration_ns,
        running_ns=duration_ns,
        provenance=pl.lit("measured"),
    )
