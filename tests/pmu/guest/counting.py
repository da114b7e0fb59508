"""Jobs that count loops of known length in the guest."""

from __future__ import annotations

import os
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

from collectors.perf.collector import PerfCollector
from hwprof.hardware import perf_event
from tests.pmu.guest.lifecycles import CORE, INSTRUCTIONS, Lifecycle, context, counted_in_turn, rows
from tests.pmu.guest.loops import A_WHILE, loop
from tests.support.reported import fields, texts
from tests.support.worker_thread import WorkerThread

SIZES = (1_000, 51_000, 1_001_000)
REPEATS = 20


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def known_loops() -> dict[str, Any]:
    """Loops of known length in the main thread, in a busy worker and in a helper that sleeps at first; all counted
    once more by a counter that the collector knows nothing of."""
    worker, helper = WorkerThread(), WorkerThread()
    collector = PerfCollector()
    collector.start(context(kernel=False, events=CORE))
    lifecycle = Lifecycle(collector)
    collector.begin_iteration(0)  # an iteration in which the worker is active, and the helper is not
    lifecycle.edge(lifecycle.full)
    worker.do(lambda: loop(1_000_000))
    lifecycle.edge(lifecycle.full)
    names = {"main": threading.get_native_id(), "worker": worker.native_id, "helper": helper.native_id}
    result: dict[str, Any] = {"names": names, "event_sets": collector.event_sets(), "main": [], "worker": []}
    # a second opinion on the main thread: cycles and instructions in a group of its own
    leader = perf_event.open_event(perf_event.Attributes(0, 0, exclude_kernel=True))
    member = perf_event.open_event(perf_event.Attributes(0, 1, exclude_kernel=True, disabled=False), group_fd=leader)
    perf_event.enable_group(leader)

    collector.begin_iteration(0)
    _, _, before = perf_event.read_group(leader, 2)
    begin = lifecycle.edge(lifecycle.full)
    for _ in range(REPEATS):
        for turns in SIZES:
            first = lifecycle.edge(lifecycle.gap)
            loop(turns)
            second = lifecycle.edge(lifecycle.gap)
            third = lifecycle.edge(lifecycle.leave)
            worker.do(partial(loop, turns))
            fourth = lifecycle.edge(lifecycle.leave)
            result["main"].append((turns, lifecycle.span(first, second)))
            result["worker"].append((turns, lifecycle.span(third, fourth)))
    result["leaves"] = len(lifecycle.spans)
    helper.do(lambda: loop(3_000_000))
    end = lifecycle.edge(lifecycle.full)
    _, _, after = perf_event.read_group(leader, 2)
    os.close(member)
    os.close(leader)
    result["whole"] = lifecycle.span(begin, end)
    result["second_opinion"] = [later - earlier for earlier, later in zip(before, after, strict=True)]
    # every edge in turn: what no leaf owns is in here as well
    result["consecutive"] = [lifecycle.span(edge, edge + 1) for edge in range(begin, end)]

    collector.begin_iteration(0)  # the helper was active in the last iteration, so it is read now
    lifecycle.iteration = 1
    first = lifecycle.edge(lifecycle.leave)
    helper.do(lambda: loop(1_000_000))
    result["helper_read"] = lifecycle.span(first, lifecycle.edge(lifecycle.leave))
    stopped = collector.stop()
    result["rows"] = rows(collector, lifecycle.spans)
    result["notes"], result["detail"] = texts(stopped.notes), fields(stopped.detail)
    result["events"] = [[event.name, event.meaning, event.unit, event.kind] for event in stopped.events]
    result["threads"] = stopped.tables["threads"].to_dicts()
    return result


def threads_come_and_go() -> dict[str, Any]:
    """A worker that ends in the middle of a layer, and one that begins after the counters were opened."""
    collector = PerfCollector()
    go = threading.Event()

    def work_and_end() -> None:
        go.wait()
        loop(1_000_000)

    early = threading.Thread(target=work_and_end)
    early.start()
    collector.start(context(kernel=False, events=CORE))
    lifecycle = Lifecycle(collector)
    collector.begin_iteration(0)
    first = lifecycle.edge(lifecycle.full)
    go.set()
    early.join()
    while Path(f"/proc/self/task/{early.native_id}").exists():  # it ends a moment after Python is done with it
        time.sleep(0.001)
    result: dict[str, Any] = {"early": early.native_id}
    second = lifecycle.edge(lifecycle.full)
    result["died"] = lifecycle.span(first, second)
    result["afterwards"] = lifecycle.span(second, lifecycle.edge(lifecycle.full))
    late = WorkerThread()
    lifecycle.iteration = 1
    descriptors = open_descriptors()
    collector.begin_iteration(0)
    result["descriptors"] = open_descriptors() - descriptors
    result["late"] = late.native_id
    first = lifecycle.edge(lifecycle.full)
    late.do(lambda: loop(500_000))
    result["began"] = lifecycle.span(first, lifecycle.edge(lifecycle.full))
    stopped = collector.stop()
    result["rows"] = rows(collector, lifecycle.spans)
    result["threads"], result["notes"] = stopped.tables["threads"].to_dicts(), texts(stopped.notes)
    return result


def many_events() -> dict[str, Any]:
    """Twice as many events as there are counters: sets, each of which is exact."""
    collector = PerfCollector()
    collector.start(context(kernel=False, events=[*CORE, *INSTRUCTIONS]))
    return counted_in_turn(collector, 1_000_000)


def a_dead_event() -> dict[str, Any]:
    """A code that this PMU opens and does not implement."""
    collector = PerfCollector()
    collector.start(context(kernel=False, events=[*CORE, "r1b", "armv8_pmuv3/event=0x8,name=again/"]))
    return counted_in_turn(collector, A_WHILE)


def what_the_pmu_lacks() -> dict[str, Any]:
    """Events that the kernel names and this PMU does not have."""
    collector = PerfCollector()
    collector.start(context(kernel=False, events=["cache-misses", "branches", "instructions"]))
    return counted_in_turn(collector, 1000)


def defaults() -> dict[str, Any]:
    """What is counted where nobody asks for anything."""
    collector = PerfCollector()
    collector.start(context(kernel=False))
    return counted_in_turn(collector, A_WHILE)
