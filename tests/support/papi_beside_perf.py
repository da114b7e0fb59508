"""Work that perf and PAPI count side by side: here, and inside the emulated machine that has a PMU."""

from __future__ import annotations

import ctypes
import hashlib
import mmap
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from collectors.papi.collector import PapiCollector
from collectors.perf.collector import PerfCollector
from hwprof.collector.contract import CountedSpan, PassContext
from tests.support.reported import fields, texts
from tests.support.worker_thread import WorkerThread

SOFTWARE = {
    "task-clock": "perf::TASK-CLOCK",
    "page-faults": "perf::PAGE-FAULTS",
    "context-switches": "perf::CONTEXT-SWITCHES",
    "cpu-migrations": "perf::CPU-MIGRATIONS",
}
PAGES = 500
ROUNDS = 10


def touch_and_compute(pages: int, rounds: int) -> None:
    """Writes to fresh pages for the first time, then computes without the interpreter lock."""
    memory = mmap.mmap(-1, pages * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(memory)), 1, pages * mmap.PAGESIZE)
    hashlib.pbkdf2_hmac("sha256", b"x", b"y", rounds)


def side_by_side(events: dict[str, str], folder: Path, rounds: int) -> dict[str, Any]:
    """Both collectors over the same edges: PAPI's reading of an edge comes first, as it does at every edge of a run
    with both. Two threads work; a third begins after the first iteration."""
    hand = WorkerThread()
    perf, papi = PerfCollector(), PapiCollector()
    tid = threading.get_native_id()
    perf.start(PassContext("measure", os.getpid(), tid, folder, {"events": list(events)}))
    papi.start(PassContext("measure", os.getpid(), tid, folder, {"events": list(events.values())}))
    full = (papi.full_reader(), perf.full_reader())

    def edge() -> None:
        for read in full:
            read()

    late: list[WorkerThread] = []
    spans: list[CountedSpan] = []
    for iteration in range(ROUNDS):
        for collector in (papi, perf):
            collector.begin_iteration(0)
        edge()
        for worker in (hand, *late):
            worker.begin(lambda: touch_and_compute(PAGES, rounds))
        touch_and_compute(PAGES, rounds)
        for worker in (hand, *late):
            worker.end()
        edge()
        spans.append(CountedSpan(iteration, iteration, 2 * iteration, 2 * iteration + 1))
        if not late:
            late.append(WorkerThread())
    counts = {"perf": perf.counts(spans), "papi": papi.counts(spans)}
    collected = {"perf": perf.stop(), "papi": papi.stop()}
    return {
        "threads": {"main": tid, "hand": hand.native_id, "late": late[0].native_id},
        "counts": {name: frame.to_dicts() for name, frame in counts.items()},
        "notes": {name: texts(result.notes) for name, result in collected.items()},
        "detail": {name: fields(result.detail) for name, result in collected.items()},
        "listed": {name: result.tables["threads"]["tid"].to_list() for name, result in collected.items()},
        "described": [[event.name, event.unit, event.kind] for event in collected["papi"].events],
    }


def table(rows: Sequence[dict[str, Any]]) -> dict[tuple[int, int, str], dict[str, Any]]:
    """Rows of counts by span, thread and event."""
    return {(row["span"], row["tid"], row["event"]): row for row in rows}
