"""How the rows of the recorder and of the collectors become the tables of a pass."""

from __future__ import annotations

import os
from collections.abc import Mapping

import polars as pl

from hwprof.collector.contract import Collected, Collector, EdgeCounter, KernelCounter
from hwprof.run.manifest import CollectorRecord, PassRecord
from hwprof.run.schema import COUNTED_WINDOW, PROCESS_CPU_TIME, WHOLE_PROCESS_TID
from hwprof.session.in_process import RunningCollectors
from hwprof.session.plan import uncounted_notes
from hwprof.session.recorder import SpanRecorder


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
    parts = {"spans": [spans], "counts": [_process_cpu_time(spans, cpu_times), _windows(recorder)]}
    for name, result in collected.items():
        with collectors.guard(name):
            rows = _rows(collectors.running[name], result, record, recorder)
            for table, frame in rows.items():
                placed = place(frame, spans, sum(part.height for part in parts["spans"])) if table == "spans" else frame
                parts.setdefault(table, []).append(placed)
            record.events += result.events
            record.metrics += result.metrics
            record.clocks += result.clocks
            collectors.records.append(CollectorRecord(name=name, state="ran", notes=result.notes, detail=result.detail))
    record.collectors = collectors.records
    return {
        table: pl.concat(frames, how="diagonal_relaxed").with_columns(pl.lit(record.name).alias("pass"))
        for table, frames in parts.items()
    }


def _rows(
    collector: Collector, result: Collected, record: PassRecord, recorder: SpanRecorder
) -> dict[str, pl.DataFrame]:
    if not isinstance(collector, EdgeCounter):
        return result.tables
    sets = collector.event_sets()
    result.notes += uncounted_notes(record.name, record.iterations, sets)
    if recorder.calling_threads() > 1:
        result.notes.append(
            f"layers were called from {recorder.calling_threads()} threads: layers that overlap in time"
            " share their counts"
        )
    spans = recorder.counted_spans()
    kernels = collector.kernel_tables(spans) if isinstance(collector, KernelCounter) else {}
    return {**result.tables, **kernels, "counts": collector.counts(spans)}


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


def place(frame: pl.DataFrame, spans: pl.DataFrame, first: int) -> pl.DataFrame:
    """A collector's spans, numbered from ``first`` on, with the iteration that each begins in by time (-1: none)."""
    iterations = spans.filter(pl.col("kind") == "iteration").select("iteration", "warmup", "begin_ns", until="end_ns")
    bare = frame.drop("iteration", "warmup", "span", strict=False).sort("begin_ns")
    placed = bare.join_asof(iterations.sort("begin_ns"), on="begin_ns", strategy="backward")
    inside = pl.col("begin_ns") < pl.col("until")
    return placed.with_columns(
        pl.when(inside).then("iteration").otherwise(-1).alias("iteration"),
        (inside.fill_null(False) & pl.col("warmup").fill_null(False)).alias("warmup"),
        pl.int_range(first, first + frame.height).alias("span"),
    ).drop("until")
