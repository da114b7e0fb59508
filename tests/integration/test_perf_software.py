"""The perf collector on this machine's kernel, with the events that need no PMU."""

from __future__ import annotations

import ctypes
import hashlib
import json
import mmap
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable

import polars as pl
import pytest

from collectors.perf.collector import PerfCollector
from hwprof.collector.contract import CountedSpan
from tests.support.bounds import RESTART_S, TICK_S, disturbance
from tests.support.reported import texts
from tests.support.worker_thread import WorkerThread

pytestmark = pytest.mark.alone

PAGE = mmap.PAGESIZE
EDGES_NS = 2_000_000
"""What the process does between its own clock and the collector's, at both edges."""


def touch(pages: int) -> tuple[mmap.mmap, Callable[[], object]]:
    """Fresh memory, and a function that writes to each of its pages for the first time."""
    memory = mmap.mmap(-1, pages * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    return memory, lambda: ctypes.memset(address, 1, pages * PAGE)


def value(counts: pl.DataFrame, span: int, tid: int | None, event: str) -> int:
    row = counts.filter(span=span, tid=tid, event=event)
    assert row.height == 1
    return int(row["value"].item())


@pytest.mark.parametrize("where", ["main", "worker"])
def test_every_touched_page_is_a_page_fault_of_its_thread(collector: Callable[[], PerfCollector], where: str) -> None:
    hand = WorkerThread()
    perf = collector()
    read = perf.full_reader()
    perf.begin_iteration(0)
    spans: list[CountedSpan] = []
    sizes = [1, 300, 2000] * 3
    for pages in sizes:
        memory, write = touch(pages)
        read()
        if where == "main":
            write()
        else:
            hand.begin(write)
            hand.end()
        read()
        spans.append(CountedSpan(len(spans), 0, 2 * len(spans), 2 * len(spans) + 1))
        del write, memory
    counts = perf.counts(spans)
    main, worker = threading.get_native_id(), hand.native_id
    toucher, other = (main, worker) if where == "main" else (worker, main)
    beyond = [value(counts, span, toucher, "page-faults") - pages for span, pages in enumerate(sizes)]
    # Python itself may touch a new page now and then, but not each time
    assert min(beyond) == 0 and sorted(beyond)[len(beyond) // 2] <= 2, beyond
    assert all(value(counts, span, other, "page-faults") < 20 for span in range(len(sizes)))


def test_task_clock_of_all_threads_is_the_process_cpu_time(collector: Callable[[], PerfCollector]) -> None:
    """Two busy threads: what the threads' clocks say adds up to what the kernel charges the process, which leaves out
    what the hypervisor took, during which perf's task-clock runs on."""

    def busy() -> bytes:
        return hashlib.pbkdf2_hmac("sha256", b"x", b"y", 1_600_000)  # without the interpreter lock

    hands = [WorkerThread(), WorkerThread()]
    perf = collector()
    perf.begin_iteration(0)
    read = perf.full_reader()
    with disturbance() as disturbed:
        before_ns = time.process_time_ns()
        read()
        for hand in hands:
            hand.begin(busy)
        for hand in hands:
            hand.end()
        read()
        process_ns = time.process_time_ns() - before_ns
    counts = perf.counts([CountedSpan(0, 0, 0, 1)])
    clocks = {row["tid"]: row["value"] for row in counts.filter(event="task-clock").to_dicts()}
    assert all(clocks[hand.native_id] > 0.2 * process_ns for hand in hands)
    # a thread that runs elsewhere is charged up to a tick later; a switch is charged to neither clock the same
    off_ns = 1e9 * (len(hands) * TICK_S + RESTART_S * disturbed.switches) + EDGES_NS
    assert process_ns - off_ns <= sum(clocks.values()) <= process_ns + off_ns + 1e9 * disturbed.stolen_s
    assert (counts["running_ns"] == counts["enabled_ns"]).all()


def test_an_idle_thread_that_wakes_up_is_in_the_whole_and_then_in_the_layers(
    collector: Callable[[], PerfCollector],
) -> None:
    def busy() -> bytes:
        return hashlib.pbkdf2_hmac("sha256", b"x", b"y", 20_000)

    hand = WorkerThread()
    perf = collector()
    leave, full = perf.leave_reader(), perf.full_reader()
    spans: list[CountedSpan] = []
    for iteration in range(3):
        perf.begin_iteration(0)
        first = 4 * iteration
        full()
        leave()
        if iteration:
            hand.begin(busy)
            hand.end()
        leave()
        full()
        spans.append(CountedSpan(2 * iteration, iteration, first, first + 3))
        spans.append(CountedSpan(2 * iteration + 1, iteration, first + 1, first + 2))
    counts = perf.counts(spans).filter(tid=hand.native_id, event="task-clock")
    values = dict(zip(counts["span"], counts["value"], strict=True))
    assert 3 not in values  # idle in iteration 0, so no layer of iteration 1 reads it
    assert values[2] > 1_000_000  # but the iteration does
    assert values[5] == pytest.approx(values[4], rel=0.2)  # awake in iteration 1, so read by the layers of iteration 2


def test_threads_that_end_and_begin(collector: Callable[[], PerfCollector]) -> None:
    """Threads that come and go at any moment cost their own counts at most."""
    perf = collector()
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            threads = [threading.Thread(target=time.sleep, args=(0.0001,)) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    churning = threading.Thread(target=churn)
    churning.start()
    read = perf.full_reader()
    spans = []
    try:
        for iteration in range(60):
            perf.begin_iteration(0)
            read()
            read()
            spans.append(CountedSpan(iteration, iteration, 2 * iteration, 2 * iteration + 1))
    finally:
        stop.set()
        churning.join()
    counts = perf.counts(spans)
    main = counts.filter(tid=threading.get_native_id(), event="task-clock")
    assert main.height == 60 and (main["value"] > 0).all()
    collected = perf.stop()
    assert collected.tables["threads"].filter(role="main").height == 1
    assert not [note for note in texts(collected.notes) if "threads not counted" in note]


MANY_THREADS = """
    import json, os, resource, threading
    from pathlib import Path
    from collectors.perf.collector import PerfCollector
    from hwprof.collector.contract import CountedSpan, PassContext

    resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
    asleep = threading.Event()
    for _ in range(100):
        threading.Thread(target=asleep.wait, daemon=True).start()
    perf = PerfCollector()
    events = ["task-clock", "page-faults", "context-switches", "cpu-migrations"]
    perf.start(PassContext("measure", os.getpid(), threading.get_native_id(), Path("/tmp"), {{"events": events}}))
    perf.begin_iteration(0)
    read = perf.full_reader()
    read()
    read()
    with open("/dev/null") as workload_still_opens_files:
        collected = perf.stop()
    counts = perf.counts([CountedSpan(0, 0, 0, 1)])
    notes, limit = [str(note) for note in collected.notes], resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    print(json.dumps([counts["tid"].n_unique(), limit, notes]))
"""


def many_threads(soft: int, hard: int) -> tuple[int, int, list[str]]:
    """(threads counted, the soft limit at the end, notes) of a process of more than 100 threads under those limits."""
    script = textwrap.dedent(MANY_THREADS).format(soft=soft, hard=hard)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    counted, limit, notes = json.loads(done.stdout)
    return counted, limit, notes


def test_the_limit_on_open_files_is_raised_where_it_can_be(collector: Callable[[], PerfCollector]) -> None:
    collector()  # whether perf works at all
    counted, limit, notes = many_threads(soft=300, hard=2000)
    assert counted > 100
    assert limit == 2000
    assert not [note for note in notes if "threads not counted" in note]


def test_where_it_cannot_be_raised_the_uncounted_threads_are_noted(collector: Callable[[], PerfCollector]) -> None:
    collector()
    counted, limit, notes = many_threads(soft=400, hard=400)
    assert 1 < counted < 60
    assert limit == 400
    (note,) = [note for note in notes if "threads not counted" in note]
    assert "Too many open files" in note and "ulimit -n" in note
