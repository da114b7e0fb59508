"""The jobs that the tests run inside the guest: ``python3 -m tests.pmu.guest.jobs NAME...`` leaves $OUT/NAME.json."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from collectors.perf import PerfCollector
from hwprof.errors import HwprofError
from hwprof.hardware import perf_event
from hwprof.hardware.machine import describe
from hwprof.session.collector import CountedSpan, PassContext
from tests.pmu.guest.loops import loop

SIZES = (1_000, 51_000, 1_001_000)
REPEATS = 20
JOBS_MODULE = "tests.pmu.guest.jobs"
CORE = ["cycles", "instructions"]
INSTRUCTIONS = [f"armv8_pmuv3/event=0x8,name=again{number}/" for number in range(10)]
"""The same event under many names: each takes a counter, and all must count the same."""


def context(**options: Any) -> PassContext:
    return PassContext("measure", os.getpid(), threading.get_native_id(), Path(os.environ["OUT"]), options)


class Hand(threading.Thread):
    """A thread that does one piece of work each time it is asked to, and sleeps otherwise."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._asked, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self.turns = 0
        self.start()

    def run(self) -> None:
        while True:
            self._asked.acquire()
            loop(self.turns)
            self._done.release()

    def work(self, turns: int) -> None:
        """``turns`` turns of the loop in that thread; returns when they are done."""
        self.turns = turns
        self._asked.release()
        self._done.acquire()


class Course:
    """Edges and spans as the recorder makes them."""

    def __init__(self, collector: PerfCollector) -> None:
        self.sweep, self.gap, self.full = collector.leave_reader(), collector.gap_reader(), collector.full_reader()
        self.spans: list[CountedSpan] = []
        self.edges = 0
        self.iteration = 0

    def edge(self, read: Callable[[], None]) -> int:
        read()
        self.edges += 1
        return self.edges - 1

    def span(self, begin: int, end: int) -> int:
        self.spans.append(CountedSpan(len(self.spans), self.iteration, begin, end))
        return len(self.spans) - 1


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def rows(collector: PerfCollector, spans: Sequence[CountedSpan]) -> list[dict[str, Any]]:
    return collector.counts(spans).to_dicts()


def known_loops() -> dict[str, Any]:
    """Loops of known length in the main thread, in a busy worker and in a helper that sleeps at first; all counted
    once more by a counter that the collector knows nothing of."""
    worker, helper = Hand(), Hand()
    collector = PerfCollector()
    collector.start(context(kernel=False, events=CORE))
    course = Course(collector)
    collector.begin_iteration(0)  # an iteration in which the worker is active, and the helper is not
    course.edge(course.full)
    worker.work(1_000_000)
    course.edge(course.full)
    names = {"main": threading.get_native_id(), "worker": worker.native_id, "helper": helper.native_id}
    result: dict[str, Any] = {"names": names, "event_sets": collector.event_sets(), "main": [], "worker": []}
    # a second opinion on the main thread: cycles and instructions in a group of its own
    leader = perf_event.open_event(perf_event.Attributes(0, 0, exclude_kernel=True))
    member = perf_event.open_event(perf_event.Attributes(0, 1, exclude_kernel=True, disabled=False), group_fd=leader)
    perf_event.enable_group(leader)

    collector.begin_iteration(0)
    _, _, before = perf_event.read_group(leader, 2)
    begin = course.edge(course.full)
    for _ in range(REPEATS):
        for turns in SIZES:
            first = course.edge(course.gap)
            loop(turns)
            second = course.edge(course.gap)
            third = course.edge(course.sweep)
            worker.work(turns)
            fourth = course.edge(course.sweep)
            result["main"].append((turns, course.span(first, second)))
            result["worker"].append((turns, course.span(third, fourth)))
    result["leaves"] = len(course.spans)
    helper.work(3_000_000)
    end = course.edge(course.full)
    _, _, after = perf_event.read_group(leader, 2)
    os.close(member)
    os.close(leader)
    result["whole"] = course.span(begin, end)
    result["second_opinion"] = [later - earlier for earlier, later in zip(before, after, strict=True)]
    # every edge in turn: what no leaf owns is in here as well
    result["consecutive"] = [course.span(edge, edge + 1) for edge in range(begin, end)]

    collector.begin_iteration(0)  # the helper was active in the last iteration, so it is swept now
    course.iteration = 1
    first = course.edge(course.sweep)
    helper.work(1_000_000)
    result["helper_swept"] = course.span(first, course.edge(course.sweep))
    stopped = collector.stop()
    result["rows"] = rows(collector, course.spans)
    result["notes"], result["detail"] = stopped.notes, stopped.detail
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
    course = Course(collector)
    collector.begin_iteration(0)
    first = course.edge(course.full)
    go.set()
    early.join()
    while Path(f"/proc/self/task/{early.native_id}").exists():  # it ends a moment after Python is done with it
        time.sleep(0.001)
    result: dict[str, Any] = {"early": early.native_id}
    second = course.edge(course.full)
    result["died"] = course.span(first, second)
    result["afterwards"] = course.span(second, course.edge(course.full))
    late = Hand()
    course.iteration = 1
    descriptors = open_descriptors()
    collector.begin_iteration(0)
    result["descriptors"] = open_descriptors() - descriptors
    result["late"] = late.native_id
    first = course.edge(course.full)
    late.work(500_000)
    result["began"] = course.span(first, course.edge(course.full))
    stopped = collector.stop()
    result["rows"] = rows(collector, course.spans)
    result["threads"], result["notes"] = stopped.tables["threads"].to_dicts(), stopped.notes
    return result


def counted_in_turn(collector: PerfCollector, turns: int, iterations: int | None = None) -> dict[str, Any]:
    """The loop once for each event set of a collector that has started, ``iterations`` times in all."""
    course = Course(collector)
    sets = [list(names) for names in collector.event_sets()]
    for iteration in range(len(sets) if iterations is None else iterations):
        course.iteration = iteration
        collector.begin_iteration(iteration % len(sets))
        first = course.edge(course.full)
        loop(turns)
        course.span(first, course.edge(course.full))
    stopped = collector.stop()
    return {
        "main": threading.get_native_id(),
        "event_sets": sets,
        "detail": stopped.detail,
        "rows": rows(collector, course.spans),
        "notes": stopped.notes,
    }


def many_events() -> dict[str, Any]:
    """Twice as many events as there are counters: sets, each of which is exact."""
    collector = PerfCollector()
    collector.start(context(kernel=False, events=[*CORE, *INSTRUCTIONS]))
    return counted_in_turn(collector, 1_000_000)


def a_dead_event() -> dict[str, Any]:
    """A code that this PMU opens and does not implement."""
    collector = PerfCollector()
    collector.start(context(kernel=False, events=[*CORE, "r1b", "armv8_pmuv3/event=0x8,name=again/"]))
    return counted_in_turn(collector, 5_000_000)


def what_is_there() -> dict[str, Any]:
    """What the collector says of itself and of the machine, and one counted loop."""
    collector = PerfCollector()
    available = collector.availability()
    machine = describe()
    result: dict[str, Any] = {
        "ok": available.ok,
        "reason": available.reason,
        "remedy": available.remedy,
        "notes": available.notes,
        "detail": available.detail,
        "has_core_pmu": machine.has_core_pmu,
        "processor": machine.processor,
        "pmus": machine.pmus,
        "paranoid": perf_event.paranoid_level(),
        "uid": os.getuid(),
    }
    try:
        collector.start(context())
    except HwprofError as error:
        return result | {"refused": error.message, "refused_remedy": error.remedy}
    course = Course(collector)
    collector.begin_iteration(0)
    first = course.edge(course.full)
    loop(1_000_000)
    course.span(first, course.edge(course.full))
    stopped = collector.stop()
    return result | {"rows": rows(collector, course.spans), "stop_notes": stopped.notes}


def hold_counters(instructions: int, cycles: int) -> list[int]:
    """Pinned counters on the only processor, which take hardware counters from everybody else (root only)."""
    libc, number = perf_event._syscall()
    flags = 1 << 2  # pinned
    fds = []
    for config in [1] * instructions + [0] * cycles:
        attributes = struct.pack("<IIQQQQQIIQ", 0, 64, config, 0, 0, 0, flags, 0, 0, 0)
        fds.append(libc.syscall(number, attributes, -1, 0, -1, 8))
    if min(fds) < 0:
        raise OSError("cannot hold counters")
    return fds


def what_the_pmu_lacks() -> dict[str, Any]:
    """Events that the kernel names and this PMU does not have."""
    collector = PerfCollector()
    collector.start(context(kernel=False, events=["cache-misses", "branches", "instructions"]))
    return counted_in_turn(collector, 1000)


@contextmanager
def held_counters(instructions: int, cycles: int = 0) -> Iterator[None]:
    """While these counters are held by this process."""
    held = hold_counters(instructions, cycles)
    try:
        yield
    finally:
        for fd in held:
            os.close(fd)


def scarce_counters() -> dict[str, Any]:
    """Others hold counters while the plan is made: all but one; the six general ones; three of them, by another
    process. And the counters that a running pass has are taken from it."""
    result: dict[str, Any] = {}
    with held_counters(instructions=5, cycles=1):
        collector = PerfCollector()
        collector.start(context(kernel=False, events=CORE))
        result["one_left"] = counted_in_turn(collector, 1_000_000, iterations=4)
    with held_counters(instructions=6):
        starved = PerfCollector()
        starved._options = {"events": CORE}
        result["starved_sets"] = starved.event_sets()
        result["starved_detail"] = starved.availability().detail
    with subprocess.Popen(
        [sys.executable, "-m", JOBS_MODULE, "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None and other.stdin is not None
        other.stdout.readline()
        collector = PerfCollector()
        collector.start(context(kernel=False, events=[*CORE, *INSTRUCTIONS]))
        result["three_left"] = counted_in_turn(collector, 1_000_000) | {"other": other.pid}
        other.stdin.close()
    collector = PerfCollector()
    collector.start(context(kernel=False, events=CORE))
    course = Course(collector)
    collector.begin_iteration(0)
    with held_counters(instructions=6):
        first = course.edge(course.full)
        loop(20_000_000)
        course.span(first, course.edge(course.full))
    stopped = collector.stop()
    result["robbed_rows"], result["robbed_notes"] = rows(collector, course.spans), stopped.notes
    return result


def hold() -> dict[str, Any]:
    """Holds three counters until its input is closed."""
    with held_counters(instructions=3):
        print("held", flush=True)
        sys.stdin.read()
    return {}


def ordinary_user() -> dict[str, Any]:
    """``what_is_there`` as an ordinary user at each level of kernel.perf_event_paranoid."""
    switch = Path("/proc/sys/kernel/perf_event_paranoid")
    before = switch.read_text()
    result = {}
    for level in (1, 2, 3):
        switch.write_text(str(level))
        out = Path(f"/tmp/paranoid{level}")
        out.mkdir()
        out.chmod(0o777)
        command = [sys.executable, "-m", JOBS_MODULE, "what_is_there"]
        subprocess.run(command, check=True, env={**os.environ, "OUT": str(out)}, user=1000, group=1000, extra_groups=[])
        result[str(level)] = json.loads((out / "what_is_there.json").read_text())
    switch.write_text(before)
    return result


JOBS: dict[str, Callable[[], dict[str, Any]]] = {
    "known_loops": known_loops,
    "threads_come_and_go": threads_come_and_go,
    "what_is_there": what_is_there,
    "many_events": many_events,
    "a_dead_event": a_dead_event,
    "what_the_pmu_lacks": what_the_pmu_lacks,
    "scarce_counters": scarce_counters,
    "hold": hold,
    "ordinary_user": ordinary_user,
}


def main(names: Sequence[str]) -> None:
    out = Path(os.environ["OUT"])
    for name in names:
        (out / f"{name}.json").write_text(json.dumps(JOBS[name]()))


if __name__ == "__main__":
    main(sys.argv[1:])
