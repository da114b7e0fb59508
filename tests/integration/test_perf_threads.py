"""Threads in great number, threads that die, and processes beside: on this machine's kernel, with software events."""

from __future__ import annotations

import ctypes
import json
import mmap
import resource
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from collectors.perf.collector import PerfCollector
from hwprof.collector.contract import CountedSpan
from tests.support.reported import texts
from tests.support.requirements import missing

pytestmark = pytest.mark.alone

SLEEPING = 2000
DESCRIPTORS = 9000  # four software events a thread, and some to spare
EVENTS = ["task-clock"]  # the other software events come along


THOUSANDS = """
    import json, os, statistics, threading, time
    from pathlib import Path
    from collectors.perf.collector import PerfCollector
    from hwprof.collector.contract import CountedSpan, PassContext

    asleep = threading.Event()
    threading.stack_size(1 << 16)
    for _ in range({sleeping}):
        threading.Thread(target=asleep.wait, daemon=True).start()
    perf = PerfCollector()
    perf.start(PassContext("measure", os.getpid(), threading.get_native_id(), Path("/tmp"), {{"events": {events}}}))
    full, enter, leave = perf.full_reader(), perf.enter_reader(), perf.leave_reader()
    perf.begin_iteration(0)
    full()  # at first a thread is active if it has ever worked, and being born is work
    perf.begin_iteration(0)

    def seconds(edge):
        begin = time.perf_counter()
        edge()
        return time.perf_counter() - begin

    whole = [seconds(full) for _ in range(5)]
    leaf = [seconds(edge) for _ in range(100) for edge in (enter, leave)]
    spans = [CountedSpan(0, 0, 1, 5), CountedSpan(1, 0, 6, 7)]
    collected = perf.stop()
    rows = perf.counts(spans).filter(event="task-clock")
    print(json.dumps({{
        "counted": rows.filter(span=0)["tid"].n_unique(),
        "in_a_layer": rows.filter(span=1)["tid"].n_unique(),
        "full_s": statistics.median(whole),
        "leaf_s": statistics.median(leaf),
        "notes": [str(note) for note in collected.notes],
    }}))
"""


def test_of_thousands_of_threads_only_the_active_ones_cost_at_edges(collector: Callable[[], PerfCollector]) -> None:
    collector()  # whether perf works at all
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < DESCRIPTORS:
        missing(f"{DESCRIPTORS} open files (ulimit -Hn is {hard})")
    script = textwrap.dedent(THOUSANDS).format(sleeping=SLEEPING, events=EVENTS)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["counted"] > SLEEPING
    assert result["in_a_layer"] < 10
    assert result["leaf_s"] < result["full_s"] / 20
    assert not [note for note in result["notes"] if "threads not counted" in note]


def test_a_thread_that_dies_in_a_layer_keeps_its_last_counts(collector: Callable[[], PerfCollector]) -> None:
    pages = 500
    memory = mmap.mmap(-1, pages * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    go = threading.Event()

    def touch_and_end() -> None:
        go.wait()
        ctypes.memset(address, 1, pages * mmap.PAGESIZE)

    thread = threading.Thread(target=touch_and_end)
    thread.start()
    perf = collector()
    perf.begin_iteration(0)
    perf.full_reader()()
    go.set()
    thread.join()
    while Path(f"/proc/self/task/{thread.native_id}").exists():
        time.sleep(0.001)
    perf.full_reader()()
    perf.full_reader()()
    counts = perf.counts([CountedSpan(0, 0, 0, 1), CountedSpan(1, 0, 1, 2)]).filter(
        tid=thread.native_id, event="page-faults"
    )
    died, afterwards = counts.sort("span")["value"]
    assert pages <= died < pages + 50
    assert afterwards == 0


BUSY = "import sys, time\nwhile time.process_time() < 0.5: pass\nprint(flush=True)\nsys.stdin.read()"


def child_notes(perf: PerfCollector) -> list[str]:
    return [note for note in texts(perf.stop().notes) if note.startswith("child processes")]


def test_a_working_child_process_is_noted_by_name(collector: Callable[[], PerfCollector]) -> None:
    perf = collector()
    with subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdin is not None
        child.stdout.readline()
        (note,) = child_notes(perf)
        child.stdin.close()
    assert f"(pid {child.pid})" in note and "is not counted" in note


def test_a_child_process_that_has_ended_is_noted(collector: Callable[[], PerfCollector]) -> None:
    perf = collector()
    subprocess.run([sys.executable, "-c", BUSY], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    (note,) = child_notes(perf)
    assert "they have ended" in note


def test_an_idle_child_process_is_not(collector: Callable[[], PerfCollector]) -> None:
    with subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdin is not None
        child.stdout.readline()  # its work lies before the counting
        perf = collector()
        until = time.process_time() + 0.2
        while time.process_time() < until:
            pass
        assert child_notes(perf) == []
        child.stdin.close()
