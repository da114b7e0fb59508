"""Threads and waiting as rows: where each thread's time went, and where the critical path lay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import polars as pl

from hwprof.report.document.threads_schema import PathPart, ThreadTimes, Waiting

FILE: Final = "waiting.csv"

SCHEMA: Final = pl.Schema(
    {
        "what": pl.String,  # "thread": its time by state; "path": the critical path by thread and state
        "iteration": pl.Int64,  # null: the mean of all
        "layer": pl.String,  # null: the whole inference
        "tid": pl.Int64,
        "thread": pl.String,
        "role": pl.String,
        "state": pl.String,
        "time_ns": pl.Float64,
        "share_ratio": pl.Float64,
        "share_low_ratio": pl.Float64,
        "share_high_ratio": pl.Float64,
        "samples": pl.Int64,
    }
)


def frames(waiting: Waiting | None) -> dict[str, pl.DataFrame]:
    """The file's contents, where there are any."""
    if waiting is None:
        return {}
    rows = [row for one in waiting.threads for row in _of_thread(one, waiting.elapsed_ns)]
    threads = {one.tid: one for one in waiting.threads}
    rows += _of_path(waiting.critical_path, threads)
    for iteration in waiting.by_iteration:
        rows += _of_path(iteration.critical_path, threads, iteration=iteration.iteration)
    for layer in waiting.layers:
        rows += _of_path(layer.critical_path, threads, layer=layer.path)
    return {FILE: pl.DataFrame(rows, schema=SCHEMA)}


def states(one: ThreadTimes) -> dict[str, float]:
    """A thread's time by state; they add up to the elapsed time."""
    return {
        "busy": one.busy_ns,
        "waiting": one.waiting_ns,
        "preempted": one.preempted_ns,
        **one.blocked_ns,
        "unsampled": one.unsampled_ns,
        "absent": one.absent_ns,
    }


def _of_thread(one: ThreadTimes, elapsed_ns: float) -> Iterator[dict[str, Any]]:
    for state, ns in states(one).items():
        if ns:
            yield {"what": "thread", **_who(one), "state": state, "time_ns": ns, "share_ratio": ns / elapsed_ns}


def _of_path(parts: list[PathPart], threads: dict[int, ThreadTimes], **where: Any) -> Iterator[dict[str, Any]]:
    for part in parts:
        yield {
            "what": "path",
            **where,
            **_who(threads[part.tid]),
            "state": part.state,
            "time_ns": part.ns,
            "share_ratio": part.share,
            "share_low_ratio": part.share_low,
            "share_high_ratio": part.share_high,
            "samples": part.samples,
        }


def _who(one: ThreadTimes) -> dict[str, Any]:
    return {"tid": one.tid, "thread": one.name, "role": one.role}
