"""What reads counters at both ends of a layer, each measured in this process: hwprof, PAPI, torch.profiler."""

from __future__ import annotations

import ctypes
import ctypes.util
import hashlib
import importlib
import importlib.util
import os
import re
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hwprof.session.recorder import GAP_NS

SLEEPING, WORKING, SPINNING = "asleep", "worked, asleep again", "spinning"
EVENTS: Final = {
    "task-clock": "perf::TASK-CLOCK",
    "page-faults": "perf::PAGE-FAULTS",
    "context-switches": "perf::CONTEXT-SWITCHES",
    "cpu-migrations": "perf::CPU-MIGRATIONS",
}
TORCH: Final = {"performance_events, ReLU": "ReLU", "performance_events, Conv2d and SiLU in turn": "Conv2d"}
PROCESSORS: Final = sorted(os.sched_getaffinity(0))
BORN_WITH_NS: Final = 1_000_000
"""Processor time of a thread before it is counted, so that the collector holds it for one that takes part."""

Forward = Callable[[], None]


@dataclass(frozen=True)
class Configuration:
    """One line of the table, measured in processes of its own."""

    contestant: str
    threads: int = 0  # beside the main thread
    state: str = ""


# --- the threads


class Other(threading.Thread):
    """A thread beside the main one: it begins with ``prepare``, then sleeps, and works a little when it is woken."""

    def __init__(self, prepare: Callable[[], None], spins: bool) -> None:
        super().__init__(daemon=True)
        self._prepare, self._spins = prepare, spins
        self._wake, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self._failed: Exception | None = None
        self.start()
        self._done.acquire()
        if self._failed is not None:
            raise SystemExit(f"its counters cannot be started: {self._failed}")

    def run(self) -> None:
        """The thread's life."""
        while time.thread_time_ns() < BORN_WITH_NS:
            pass
        try:
            self._prepare()
        except Exception as error:  # as of a PAPI that does not know the processor
            self._failed = error
        self._done.release()
        while self._spins:
            os.sched_setaffinity(0, {PROCESSORS[-1]})
            hashlib.pbkdf2_hmac("sha256", b"x", b"y", 100_000_000)  # minutes, without the interpreter's lock
        while True:
            self._wake.acquire()
            self._done.release()

    def wake(self) -> None:
        """Has it work."""
        self._wake.release()

    def wait(self) -> None:
        """Until it has worked."""
        self._done.acquire()


class Work:
    """The layer: what it does is timed here and is not the counters' cost."""

    def __init__(self, state: str, others: Sequence[Other]) -> None:
        self._woken = others if state == WORKING else ()
        self.begin_ns = self.end_ns = 0

    def __call__(self) -> None:
        """Calls the layer."""
        self.begin_ns = time.perf_counter_ns()
        if self._woken:
            for other in self._woken:
                other.wake()
            for other in self._woken:
                other.wait()
            time.sleep(0.001)  # until all of them sleep
        self.end_ns = time.perf_counter_ns()


# --- the contestants: each gives the layer with its counters read before and after


class Hwprof:
    """The collector and the recorder of a measure pass."""

    def __init__(self) -> None:
        from collectors.perf.collector import PerfCollector

        self._collector = PerfCollector()

    def prepare(self) -> None:
        """Threads are counted from outside."""

    def layer(self, work: Work, threads: int) -> Forward:
        """As the layer watch would wrap it."""
        from hwprof.collector.contract import CountedSpan, PassContext
        from hwprof.session.recorder import SpanRecorder

        self._collector.start(
            PassContext("measure", os.getpid(), threading.get_native_id(), Path(), {"events": list(EVENTS)})
        )
        recorder = SpanRecorder()
        recorder.count_with([self._collector])
        forward = recorder.counted(recorder.path_number("layer"), work)
        forward()
        tids = set(self._collector.counts([CountedSpan(0, 0, 0, 1)])["tid"])
        if len(tids) != threads + 1:
            raise SystemExit(f"hwprof reads {len(tids)} threads of {threads + 1}")
        return forward


class Papi:
    """Event sets that each thread makes and starts for itself; the main thread reads them all."""

    def __init__(self, bare: bool) -> None:
        self._papi, self._bare = importlib.import_module("pypapi.papi_low"), bare
        preloaded = os.environ.get("LD_PRELOAD")
        self._code = ctypes.CDLL(None if preloaded else importlib.import_module("pypapi._papi").__file__)
        version = re.search(r"\.so\.(\d+)\.(\d+)", preloaded or "")
        numbers = [(int(version[1]) << 24) | (int(version[2]) << 16)] if version else []
        self._papi.library_init(*numbers)
        self._code.PAPI_thread_init(ctypes.cast(ctypes.CDLL(None).pthread_self, ctypes.c_void_p))
        self._sets: list[int] = []

    def prepare(self) -> None:
        """Makes and starts the calling thread's event set."""
        event_set = self._papi.create_eventset()
        for name in EVENTS.values():
            self._papi.add_named_event(event_set, name)
        self._papi.start(event_set)
        self._sets.append(event_set)

    def layer(self, work: Work, threads: int) -> Forward:
        """Reads all of them, before and after."""
        self.prepare()
        sets = [self._sets[-1], *self._sets[:-1]]
        return self._bare_layer(work, sets) if self._bare else self._binding_layer(work, sets)

    def _binding_layer(self, work: Work, sets: list[int]) -> Forward:
        read = self._papi.read
        keep: Callable[[Any], None] = [].append

        def forward() -> None:
            before = [read(one) for one in sets]
            try:
                work()
            finally:
                keep((before, [read(one) for one in sets]))

        return forward

    def _bare_layer(self, work: Work, sets: list[int]) -> Forward:
        read, values = self._code.PAPI_read, (ctypes.c_longlong * len(EVENTS))()
        if any(read(one, values) != 0 for one in sets):
            raise SystemExit("PAPI_read fails")

        def forward() -> None:
            for one in sets:
                read(one, values)
            try:
                work()
            finally:
                for one in sets:
                    read(one, values)

        return forward


def measure_threads(configuration: Configuration, layers: int) -> dict[str, float]:
    """Nanoseconds that reading the counters adds to a layer."""
    name = configuration.contestant
    contestant = Hwprof() if name.startswith("hwprof") else Papi(bare="bare" in name)
    spins = configuration.state == SPINNING
    others = [Other(contestant.prepare, spins) for _ in range(configuration.threads)]
    if spins:
        os.sched_setaffinity(0, {PROCESSORS[0]})
    time.sleep(0.02)
    work = Work(configuration.state, others)
    counted = contestant.layer(work, configuration.threads)
    pause_ns = 2 * GAP_NS if "separate" in name else 0
    costs: dict[str, list[int]] = {"bare": [], "counted": []}
    kinds: dict[str, Forward] = {"bare": work, "counted": counted}
    for number in range(layers):
        if number % 20 == 0:
            time.sleep(0.001)  # not all in the same time slice of somebody else's work
        for kind, forward in kinds.items():
            if kind == "bare" and number % 10:
                continue  # adjacent layers are to be adjacent
            until = time.perf_counter_ns() + pause_ns
            while (begin := time.perf_counter_ns()) < until:
                pass
            forward()
            costs[kind].append(time.perf_counter_ns() - begin - (work.end_ns - work.begin_ns))
    return {"layer_ns": statistics.median(costs["counted"]) - statistics.median(costs["bare"])}


def measure_torch(configuration: Configuration, layers: int) -> dict[str, float]:
    """The same of performance_events, and how many operators a layer has."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    torch.set_num_threads(1)
    modules: list[torch.nn.Module] = []
    while len(modules) < layers:
        if TORCH[configuration.contestant] == "Conv2d":
            modules += [torch.nn.Conv2d(8, 8, 1), torch.nn.SiLU(inplace=True)]
        else:
            modules.append(torch.nn.ReLU())
    model, image = torch.nn.Sequential(*modules).eval(), torch.randn(1, 8, 8, 8)

    def forward() -> int:
        begin = time.perf_counter_ns()
        model(image)
        return time.perf_counter_ns() - begin

    bare, profiled, operators = [], [], 0
    with torch.inference_mode():
        for _ in range(10):
            bare.append(forward())
            events = torch._C._profiler._ExperimentalConfig(performance_events=["pagefaults"])
            with profile(activities=[ProfilerActivity.CPU], experimental_config=events) as profiler:
                profiled.append(forward())
            operators = len(profiler.events() or ())
    if not operators:
        raise SystemExit("torch.profiler recorded nothing: performance_events do not work here")
    taken = (statistics.median(profiled) - statistics.median(bare)) / len(modules)
    return {"layer_ns": taken, "operators": operators / len(modules)}
