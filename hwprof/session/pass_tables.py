"""How the rows of the recorder and of the collectors become the tables of a pass."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from hwprof.analysis.cpu_time import NEW_THREADS, SWITCHES, UNKNOWN, uncounted
from hwprof.collector.contract import Collected, Collector, counts_at_edges
from hwprof.run.manifest import PassRecord
from hwprof.run.notes import Note, NoteKind
from hwprof.run.process_events import (
    BEGUN_THREADS_CPU_TIME,
    COUNTED_WINDOW,
    NEW_THREADS_CPU_TIME,
    PROCESS_CPU_ERROR,
    PROCESS_CPU_TIME,
    WHOLE_PROCESS_TID,
)
from hwprof.session.begun_threads import BegunThread
from hwprof.session.in_process import RunningCollectors
from hwprof.session.plan import uncounted_notes
from hwprof.session.process_cpu_time import Charged
from hwprof.session.recorder import SpanRecorder
from hwprof.session.results import PassResults
from hwprof.session.span_rows import CountedSpans

UNCOUNTED: Final = {
    NEW_THREADS: "threads that began during an iteration are counted from the next one on",
    SWITCHES: "context switches: counters stand still while the kernel switches threads, for some microseconds each",
    UNKNOWN: "nothing tells why",
}
"""Why a part of the CPU time was not counted."""


COUNTED_AT_ONCE: Final = 64
"""Spans whose counts by kernel are made at a time: of millions of rows no more than these are in memory."""


def gather(
    record: PassRecord,
    recorder: SpanRecorder,
    collectors: RunningCollectors,
    collected: Mapping[str, Collected],
    folder: Path,
) -> PassResults:
    """Brings all rows together, with ``pass`` filled in; completes the pass's record. Rows that are many lie in
    ``folder``."""
    spans = recorder.table(os.getpid())
    results = PassResults(record, lambda: spans, folder=folder)
    results.add("spans", spans)
    process = process_cpu_time(spans, recorder.cpu_times())
    results.add("counts", process)
    results.add("counts", _windows(recorder))
    results.add("counts", begun_threads(spans, recorder.counted_spans(), recorder.begun_threads()))
    results.settle()  # no collector is to blame for these
    for name, result in collected.items():
        with collectors.guard(name):
            _count(collectors.running[name], result, record, recorder)
            _note_uncounted(result, spans, process, record)
            results.keep(collectors.plans[name], result, _by_kernel(collectors.running[name], recorder))
    record.collectors += collectors.records
    return results


def _count(collector: Collector, result: Collected, record: PassRecord, recorder: SpanRecorder) -> None:
    """What a counter's edges come to is added to its result."""
    if not counts_at_edges(collector) or not isinstance(result, Collected):
        return  # what is no result, ``keep`` says
    result.notes += uncounted_notes(record.name, record.iterations, collector.event_sets())
    if recorder.calling_threads() > 1:
        text = "layers that overlap in time share their counts"
        result.notes.append(Note(NoteKind.SUSPECT, text, f"layers called from {recorder.calling_threads()} threads"))
    result.tables = {**result.tables, "counts": collector.counts(recorder.counted_spans())}


def _by_kernel(collector: Collector, recorder: SpanRecorder) -> Iterator[dict[str, pl.DataFrame]]:
    """What a counter's edges come to by kernel, some spans at a time."""
    if not counts_at_edges(collector):
        return
    spans = recorder.counted_spans()
    for begin in range(0, max(len(spans), 1), COUNTED_AT_ONCE):
        tables = dict(collector.kernel_tables(spans[begin : begin + COUNTED_AT_ONCE]))
        if begin:
            tables.pop("kernels", None)  # all of them came with the first
        yield tables


def _note_uncounted(result: Collected, spans: pl.DataFrame, process: pl.DataFrame, record: PassRecord) -> None:
    """Which part of the CPU time a source of counts did not see: as large as the report's shares are too small."""
    own = result.tables.get("counts") if isinstance(result, Collected) else None
    if own is None or own.is_empty():
        return
    spans = spans.filter(pl.col("kind").is_in(["iteration", "stage"]))  # which it is told by: of counts there are many
    own = own.join(spans.select("span"), on="span", how="semi").cast({"event": pl.String, "provenance": pl.String})
    missed = uncounted(spans, pl.concat([own, process], how="diagonal_relaxed"), record.iterations)
    if missed is not None:
        subject = f"{missed.share:.1%} of the process's CPU time was not counted"
        result.notes.append(Note(NoteKind.INCOMPLETE, UNCOUNTED[missed.cause], subject))


def _windows(recorder: SpanRecorder) -> pl.DataFrame:
    """The counts rows that say how long each span was counted for, with the columns that a counter gives."""
    spans, windows = recorder.counted_spans(), recorder.windows_ns()
    return pl.DataFrame(
        {
            "iteration": pl.Series(spans.iterations, dtype=pl.Int32),
            "span": pl.Series(spans.numbers, dtype=pl.Int64),
            "value": pl.Series(windows, dtype=pl.Int64),
            "enabled_ns": pl.Series(windows, dtype=pl.Int64),
            "running_ns": pl.Series(windows, dtype=pl.Int64),
        }
    ).with_columns(tid=pl.lit(WHOLE_PROCESS_TID, pl.Int32), event=pl.lit(COUNTED_WINDOW), provenance=pl.lit("measured"))


def begun_threads(
    spans: pl.DataFrame, counted: CountedSpans, begun: Mapping[int, Sequence[BegunThread]]
) -> pl.DataFrame:
    """The counts rows of what threads took that began in an iteration: each span that was counted has all of that of
    the threads that were there in it, for as long as these two have in common at most."""
    threads = pl.DataFrame(
        [(iteration, *one) for iteration, found in begun.items() for one in found],
        schema={"iteration": pl.Int32, "since_ns": pl.Int64, "until_ns": pl.Int64, "cpu_ns": pl.Int64},
        orient="row",
    )
    numbers = pl.Series("span", counted.numbers[np.isin(counted.iterations, list(begun))], dtype=pl.Int64)
    begin, end = pl.max_horizontal("begin_ns", "since_ns"), pl.min_horizontal("end_ns", "until_ns")
    met = (
        spans.join(numbers.to_frame(), on="span", how="semi")
        .join(threads, on="iteration")
        .with_columns(
            cpu_ns=pl.min_horizontal("cpu_ns", end - begin), duration_ns=pl.col("end_ns") - pl.col("begin_ns")
        )
        .filter(pl.col("cpu_ns") > 0)
    )
    sums = met.group_by("iteration", "span", "duration_ns").agg(value=pl.col("cpu_ns").sum()).sort("span")
    return sums.select(
        "iteration",
        "span",
        tid=pl.lit(WHOLE_PROCESS_TID),
        event=pl.lit(BEGUN_THREADS_CPU_TIME),
        value="value",
        enabled_ns="duration_ns",
        running_ns="duration_ns",
        provenance=pl.lit("measured"),
    )


def process_cpu_time(spans: pl.DataFrame, cpu_times: Mapping[int, Charged]) -> pl.DataFrame:
    """The counts rows of the whole process: for each iteration the middle of its CPU time's bounds, the error, and what
    new threads took."""
    iterations = spans.filter((pl.col("kind") == "iteration") & pl.col("iteration").is_in(list(cpu_times)))
    found = [cpu_times[index] for index in iterations["iteration"]]
    duration_ns = pl.col("end_ns") - pl.col("begin_ns")
    values = {
        PROCESS_CPU_TIME: [(one.least_ns + one.most_ns) // 2 for one in found],
        PROCESS_CPU_ERROR: [(one.most_ns - one.least_ns + 1) // 2 for one in found],
        NEW_THREADS_CPU_TIME: [one.new_threads_ns for one in found],
    }
    return pl.concat(
        iterations.select(
            "iteration",
            "span",
            tid=pl.lit(WHOLE_PROCESS_TID),
            event=pl.lit(event),
            value=pl.Series(ns, dtype=pl.Int64),
            enabled_ns=duration_ns,
            running_ns=duration_ns,
            provenance=pl.lit("measured"),
        )
        for event, ns in values.items()
    )
