"""What reading counters at both ends of a layer costs: hwprof beside PAPI and torch.profiler's performance_events.

    python -m scripts.benchmarks.edges [--rounds 7] [--layers 300]

Every round starts one process for each line of the table, in a random order. There a layer that does nothing is called
again and again, bare and with its counters read before and after, on the main thread and on 1 or 16 others: task
clock, page faults, context switches and migrations of each. A layer's cost is what the call takes outside of the
layer's own work, less what the bare call takes: the median of the calls, then of the rounds.

hwprof is its own recorder with its own collector, with all that it records of a layer. "Adjacent" layers follow each
other within 20 µs: the workers, read at the end of the one, are not read again at the begin of the next; "separate"
ones are. PAPI is read in the same way, thread by thread, before and after: by its Python binding, and by bare calls of
PAPI_read into one array that is never looked at. The threads sleep all the time; or each works and sleeps again within
every layer; or one spins on another processor, which reading it interrupts.

performance_events are of another kind: the profiler reads at both ends of every operator, and the main thread only,
whatever the others do; here one event (page faults), because without a PMU there is no other. Their cost is a forward
with them less the forward without a profiler, by layer.
"""

from __future__ import annotations

import argparse
import ctypes
import ctypes.util
import hashlib
import importlib
import importlib.util
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from hwprof.session.recorder import GAP_NS
from scripts.benchmarks.tables import Table, write

SLEEPING, WORKING, SPINNING = "asleep", "worked, asleep again", "spinning"
EVENTS: Final = {
    "task-clock": "perf::TASK-CLOCK",
    "page-faults": "perf::PAGE-FAULTS",
    "context-switches": "perf::CONTEXT-SWITCHES",
    "cpu-migrations": "perf::CPU-MIGRATIONS",
}
COMMAND: Final = (sys.executable, "-m", "scripts.benchmarks.edges")
BORN_WITH_NS: Final = 1_000_000
"""Processor time of a thread before it is counted, so that the collector holds it for one that takes part."""

Forward = Callable[[], None]


@dataclass(frozen=True)
class Configuration:
    """One line of the table, measured in processes of its own."""

    contestant: str
    threads: int = 0  # beside the main thread
    state: str = ""


PROCESSORS: Final = sorted(os.sched_getaffinity(0))
CASES: Final = [(1, SLEEPING), (16, SLEEPING), (1, WORKING), (16, WORKING), (1, SPINNING)]
WITH_THREADS: Final = [
    "hwprof, adjacent layers",
    "hwprof, separate layers",
    "PAPI, Python binding",
    "PAPI, bare PAPI_read",
]
TORCH: Final = {"performance_events, ReLU": "ReLU", "performance_events, Conv2d and SiLU in turn": "Conv2d"}
CONFIGURATIONS: Final = [Configuration(name, *case) for case in CASES for name in WITH_THREADS] + [
    Configuration(name) for name in TORCH
]


# --- the threads


class Other(threading.Thread):
    """A thread beside the main one: it begins with ``prepare``, then sleeps, and works a little when it is woken."""

    def __init__(self, prepare: Callable[[], None], spins: bool) -> None:
        super().__init__(daemon=True)
        self._prepare, self._spins = prepare, spins
        self._wake, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self.start()
        self._done.acquire()

    def run(self) -> None:
        """The thread's life."""
        while time.thread_time_ns() < BORN_WITH_NS:
            pass
        self._prepare()
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
        tids = set(self._collector._count_columns([CountedSpan(0, 0, 0, 1)]).tid.tolist())
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


# --- the parent


def measure_in_a_process(configuration: Configuration, layers: int) -> dict[str, float]:
    """One measurement in a fresh process."""
    library = ctypes.util.find_library("papi")
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # no threads but the benchmark's
    if configuration.contestant.startswith("PAPI") and library:
        environment["LD_PRELOAD"] = library
    with tempfile.TemporaryFile("w+") as errors:
        done = subprocess.run(
            [*COMMAND, "--one", json.dumps(asdict(configuration)), "--layers", str(layers)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            check=False,
        )
        if done.returncode:
            errors.seek(0)
            said = errors.read().strip().splitlines() or ["it said nothing"]
            raise SystemExit(f"{configuration}: {said[-1]}")
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def require_papi() -> str:
    """Which PAPI will be read; ends the script where there is none."""
    if importlib.util.find_spec("pypapi") is None:
        raise SystemExit("PAPI's Python binding is missing: pip install python-papi")
    library = ctypes.util.find_library("papi")
    if library:
        return f"The system's {library} serves the Python binding as well (in place of the older one that it brings)."
    return "PAPI is the one that the Python binding brings."


def table(rounds: dict[Configuration, list[dict[str, float]]], papi: str) -> Table:
    """Medians over rounds, each also as a multiple of hwprof's adjacent layers in the same case."""
    rows = [_row(configuration, rounds) for configuration in rounds]
    columns = ["counters", "threads read", "the others", "µs a layer", "µs an edge", "least … most", "times hwprof"]
    number = len(next(iter(rounds.values())))
    cases = ", ".join(f"main + {threads} {state}" for threads, state in CASES)
    note = f"""{__doc__}
{papi} {number} rounds. "Times hwprof": against its adjacent layers in the same case; for performance_events in each
case ({cases}).
"""
    return Table("Cost of reading counters at a layer's edges", columns, rows, note)


def _row(configuration: Configuration, rounds: dict[Configuration, list[dict[str, float]]]) -> list[str]:
    measured = rounds[configuration]
    layer_us = [one["layer_ns"] / 1e3 for one in measured]
    median = _median(measured)
    case = (configuration.threads, configuration.state)
    ratios = [
        median / _median(rounds[Configuration(WITH_THREADS[0], *ours)]) for ours in CASES if case in (ours, (0, ""))
    ]
    operators = measured[0].get("operators")
    return [
        configuration.contestant + (f" ({median / 1e3 / operators:.1f} an operator)" if operators else ""),
        f"main + {configuration.threads}" if configuration.threads else "main only",
        configuration.state or "any",
        f"{median / 1e3:.1f}",
        f"{median / 2e3:.1f}",
        f"{min(layer_us):.1f} … {max(layer_us):.1f}",
        "" if configuration.contestant == WITH_THREADS[0] else ", ".join(f"{ratio:.1f}" for ratio in ratios),
    ]


def _median(measured: list[dict[str, float]]) -> float:
    return statistics.median(one["layer_ns"] for one in measured)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--layers", type=int, default=300)
    parser.add_argument("--output", type=Path, default=Path("results/edges.md"))
    parser.add_argument("--one", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        configuration = Configuration(**options.one)
        measure = measure_threads if configuration.threads else measure_torch
        print(json.dumps(measure(configuration, options.layers)), flush=True)
        os._exit(0)  # not waiting for threads that spin
    papi = require_papi()
    if len(PROCESSORS) < 2:
        raise SystemExit("one thread is to spin beside the main one: this needs two processors")
    rounds: dict[Configuration, list[dict[str, float]]] = {configuration: [] for configuration in CONFIGURATIONS}
    order = random.Random(0)
    for _ in range(options.rounds):
        for configuration in order.sample(CONFIGURATIONS, len(CONFIGURATIONS)):
            rounds[configuration].append(measure_in_a_process(configuration, options.layers))
    write(table(rounds, papi), options.output)
    raw = [asdict(configuration) | {"rounds": measured} for configuration, measured in rounds.items()]
    options.output.with_suffix(".json").write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
