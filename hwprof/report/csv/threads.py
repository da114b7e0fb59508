"""``threads.csv``: where each thread's time went, and where the critical path lay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from hwprof.report.csv.table import Columns, Field, File, Table
from hwprof.report.document.document import Document
from hwprof.report.document.threads import PathPart, Threads, ThreadTimes

FILE: Final = "threads.csv"

COLUMNS: Final[Columns] = {
    "what": "thread: its time by state; path: the critical path by thread and state",
    "iteration": "none: the mean of all; of a thread, of those that it was there in",
    "layer": "none: the whole inference",
    "tid": Field(ThreadTimes, "tid"),
    "thread": Field(ThreadTimes, "name"),
    "role": Field(ThreadTimes, "role"),
    "state": Field(PathPart, "state"),
    "time_ns": Field(PathPart, "ns"),
    "share_ratio": Field(PathPart, "share"),
    "share_low_ratio": Field(PathPart, "share_low"),
    "share_high_ratio": Field(PathPart, "share_high"),
    "samples": Field(PathPart, "samples"),
    "cause": Field(PathPart, "cause"),
}
FILES: Final = (File(FILE, "a thread's or the critical path's time in one state", COLUMNS),)


def files(document: Document) -> dict[str, Table]:
    """A row a thread and state, and one a part of the critical path."""
    part = document.part(Threads)
    if part is None:
        return {}
    rows = [row for one in part.threads for row in _of_thread(one)]
    threads = {one.tid: one for one in part.threads}
    rows += _of_path(part.critical_path, threads)
    for iteration in part.by_iteration:
        rows += _of_path(iteration.critical_path, threads, iteration=iteration.iteration)
    for layer in part.layers:
        rows += _of_path(layer.critical_path, threads, layer=layer.path)
    return {FILE: Table({name: [row.get(name) for row in rows] for name in COLUMNS})}


def states(one: ThreadTimes) -> dict[str, float]:
    """A thread's time by state; they add up to its elapsed time."""
    return {
        "busy": one.busy_ns,
        "waiting": one.waiting_ns,
        "preempted": one.preempted_ns,
        **one.blocked_ns,
        "unsampled": one.unsampled_ns,
        "unknown": one.unknown_ns,
        "absent": one.absent_ns,
    }


def _of_thread(one: ThreadTimes) -> Iterator[dict[str, Any]]:
    for state, ns in states(one).items():
        if ns:
            share = ns / one.elapsed_ns
            yield {"what": "thread", **_who(one), "state": state, "time_ns": ns, "share_ratio": share}


def _of_path(parts: list[PathPart], threads: dict[int, ThreadTimes], **where: Any) -> Iterator[dict[str, Any]]:
    for part in parts:
        yield {
            "what": "path",
            **where,
            **_who_or_tid(part.tid, threads),
            "state": part.state,
            "time_ns": part.ns,
            "share_ratio": part.share,
            "share_low_ratio": part.share_low,
            "share_high_ratio": part.share_high,
            "samples": part.samples,
            "cause": part.cause,
        }


def _who_or_tid(tid: int, threads: dict[int, ThreadTimes]) -> dict[str, Any]:
    """The path also leads to threads that no sample hit, and that have no row of their own."""
    return _who(threads[tid]) if tid in threads else {"tid": tid}


def _who(one: ThreadTimes) -> dict[str, Any]:
    return {"tid": one.tid, "thread": one.name, "role": one.role}
