"""Eight programs whose threads do what is known (``threaded_programs.c``, and two of Python's), each watched by the
sampler, and what is found of their threads."""

from __future__ import annotations

import json
import select
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

from collectors.sampler.collector import SamplerCollector
from hwprof.analysis.sampled_pass import SampledPass, sampled_pass
from hwprof.analysis.thread_times import OWN_FIELDS, ThreadTimes, thread_times
from hwprof.collector.contract import Collected, PassContext
from hwprof.run.manifest import IterationRecord, PassRecord
from hwprof.run.schema import conform, empty
from tests.support.requirements import missing, require_tool

SOURCE: Final = Path(__file__).with_suffix(".c")
COMPILED: Final = ("short", "barrier", "lock", "condition", "chain", "io")
OF_PYTHON: Final = {
    # both want the interpreter all the time
    "gil": """
        def helper(number):
            spin(40 * MS)

        def iteration(number):
            made = start(helper, number)
            spin(40 * MS)
            wait("end of thread", made.join)
        """,
    # work is handed over by a queue, and its result by another one
    "queue": """
        todo, done = queue.SimpleQueue(), queue.SimpleQueue()

        def helper(number):
            for _ in range(ITERATIONS):
                wait("lock", todo.get)
                burn(30 * MS)
                done.put(1)

        def iteration(number):
            if number == 0:
                start(helper, number)
            burn(20 * MS)
            todo.put(1)
            wait("lock", done.get)
        """,
}
PROGRAMS: Final = (*COMPILED, *OF_PYTHON)

PYTHON: Final = """
    import ctypes, json, os, queue, sys, threading, time

    MS, ITERATIONS = 1_000_000, 5
    library = ctypes.CDLL(LIBRARY)
    library.burn.argtypes, library.burn.restype = [ctypes.c_long], ctypes.c_long
    told, mine = [], threading.local()

    def begins(name, born_ns):
        mine.told = {"name": name, "tid": threading.get_native_id(), "born_ns": born_ns,
                     "begun_ns": time.monotonic_ns(), "ended_ns": 0, "waits": [], "works": []}
        told.append(mine.told)

    def delay_ns():
        with open("/proc/thread-self/schedstat") as file:
            return int(file.read().split()[1])

    def burn(ns):
        begin = time.monotonic_ns()
        used = library.burn(ns)
        mine.told["works"].append([begin, time.monotonic_ns(), used])

    # reading a file lets go of the interpreter, and waits for it: that is told as well
    def spin(ns):
        begin, before, delayed = time.monotonic_ns(), time.thread_time_ns(), delay_ns()
        while time.thread_time_ns() < before + ns:
            pass
        delayed = delay_ns() - delayed
        end, used = time.monotonic_ns(), time.thread_time_ns() - before
        mine.told["works"].append([begin, end, used])
        mine.told["waits"].append(["GIL", begin, end - used, delayed])

    def wait(kind, call):
        begin, delayed = time.monotonic_ns(), delay_ns()
        call()
        delayed = delay_ns() - delayed
        mine.told["waits"].append([kind, begin, time.monotonic_ns(), delayed])

    def start(body, *given):
        born_ns = time.monotonic_ns()

        def runs():
            begins("helper", born_ns)
            body(*given)
            mine.told["ended_ns"] = time.monotonic_ns()

        made = threading.Thread(target=runs, daemon=True)
        wait("GIL", made.start)  # which returns when the other one has begun, and has the interpreter
        return made

    begins("main", 0)
"""
RUN: Final = """
    print("ready", flush=True)
    sys.stdin.readline()
    iterations = []
    for number in range(ITERATIONS):
        begin = time.monotonic_ns()
        iteration(number)
        iterations.append([begin, time.monotonic_ns()])
        time.sleep(0.002)
    print(json.dumps({"iterations": iterations, "threads": told}), flush=True)
    sys.stdin.readline()
    os._exit(0)
"""


@dataclass(frozen=True)
class Wait:
    """What of a thread's wait lies in iterations (ns). ``least``: without the time that it waited for a processor
    meanwhile, which may be before it began to wait, when it was preempted."""

    kind: str
    begin_ns: int
    end_ns: int
    least_ns: int
    most_ns: int


@dataclass(frozen=True)
class Truth:
    """What a thread told of itself: of its work and waits what lies in iterations, and from when to when it was there
    (0: always)."""

    tid: int
    name: str
    work_ns: int
    works: list[tuple[int, int, int]]  # begin, end, and what of it the thread had a processor
    waits: list[Wait]
    born_ns: int
    begun_ns: int
    ended_ns: int

    def waits_ns(self, kind: str | None = None) -> tuple[int, int]:
        """How long it waited, at least and at most; ``kind``: for that alone."""
        chosen = [wait for wait in self.waits if kind in (None, wait.kind)]
        return sum(wait.least_ns for wait in chosen), sum(wait.most_ns for wait in chosen)

    def work_while_waiting_ns(self, other: Truth) -> tuple[int, int]:
        """How much of its work it did while another thread waited, at least and at most: that one may have begun to
        wait late, when it was preempted before."""
        least = most = 0
        for begin, end, ns in self.works:
            inside = sum(_shared(begin, end, wait.begin_ns, wait.end_ns) for wait in other.waits)
            least += max(0, ns - (end - begin - inside))
            most += min(ns, inside)
        return max(0, least - sum(wait.most_ns - wait.least_ns for wait in other.waits)), most

    def there_ns(self, iterations: list[tuple[int, int]]) -> tuple[int, int]:
        """How long it was there, of these, at least and at most."""
        least, most = (sum(_shared(begin, self.ended_ns, *one) for one in iterations)
                       for begin in (self.begun_ns, self.born_ns))  # fmt: skip
        return least, most


@dataclass
class Watched:
    """What a program told, and what was found of it."""

    name: str
    iterations: list[tuple[int, int]]
    threads: list[Truth]
    collected: Collected
    taken: SampledPass
    times: ThreadTimes
    stolen_ns: int = 0  # by the hypervisor, meanwhile

    def states(self, tid: int) -> dict[str, float]:
        """What was found of a thread: its time by state, in all iterations together; empty without a sample of it."""
        found: dict[str, float] = {}
        for one in (one for row in self.times.by_iteration() for one in row["threads"] if one["tid"] == tid):
            for state, ns in one["states_ns"].items():
                found[state] = found.get(state, 0.0) + ns
        return found

    def blocked(self, tid: int) -> dict[str, float]:
        """Of these, the waits."""
        return {state: ns for state, ns in self.states(tid).items() if state not in OWN_FIELDS}


def compiled(folder: Path) -> tuple[Path, Path]:
    """The programs, and their library."""
    program, library = folder / "threaded", folder / "threaded.so"
    compiler = require_tool("cc")
    subprocess.run([compiler, "-O1", "-o", program, SOURCE, "-lpthread"], check=True)
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, SOURCE, "-lpthread"], check=True)
    return program, library


def watched(name: str, folder: Path) -> Watched:
    """Runs a program under the sampler."""
    sampler = SamplerCollector()
    available = sampler.availability()
    if not available.ok:
        missing(f"perf events ({available.reason})")
    program, library = compiled(folder)
    with subprocess.Popen(
        _command(name, program, library), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdin is not None and worker.stdout is not None
        worker.stdout.readline()
        context = PassContext("trace", worker.pid, worker.pid, folder, {})
        sampler.start(context)
        sampler.work_begins()
        worker.stdin.write("\n")
        worker.stdin.flush()
        while not select.select([worker.stdout], [], [], 0.05)[0]:
            sampler.step()
        told: dict[str, Any] = json.loads(worker.stdout.readline())
        sampler.work_ends()
        worker.stdin.write("\n")
    collected = sampler.stop()
    iterations = [(begin, end) for begin, end in told["iterations"]]
    taken = _taken(iterations, collected, worker.pid)
    times = thread_times(taken)
    assert times is not None
    truths = [_truth(one, iterations) for one in told["threads"]]
    return Watched(name, iterations, truths, collected, taken, times)


def _command(name: str, program: Path, library: Path) -> list[str]:
    if name in COMPILED:
        return [str(program), name]
    parts = [textwrap.dedent(part) for part in (PYTHON.replace("LIBRARY", repr(str(library))), OF_PYTHON[name], RUN)]
    return [sys.executable, "-c", "\n".join(parts)]


def _truth(told: dict[str, Any], iterations: list[tuple[int, int]]) -> Truth:
    """Of work that begins in an iteration and ends in it; of waits what of them lies in one."""
    waits = []
    for kind, begin, end, delay_ns in told["waits"]:
        inside = sum(_shared(begin, end, *one) for one in iterations)
        waits.append(Wait(kind, begin, end, max(0, inside - delay_ns), inside))
    work_ns = 0
    for begin, end, ns in told["works"]:
        inside = sum(_shared(begin, end, *one) for one in iterations)
        work_ns += round(ns * inside / max(1, end - begin))
    life = (told["born_ns"], told["begun_ns"], told["ended_ns"])
    return Truth(told["tid"], told["name"], work_ns, [tuple(one) for one in told["works"]], waits, *life)


def _shared(begin: int, end: int, other_begin: int, other_end: int) -> int:
    return max(0, min(end, other_end) - max(begin, other_begin))


def _taken(iterations: list[tuple[int, int]], collected: Collected, tid: int) -> SampledPass:
    rows = [
        {"pass": "trace", "kind": kind, "path": path, "begin_ns": begin, "end_ns": end, "iteration": number, "tid": tid,
         "pid": tid, "span": 3 * number + place, "warmup": False}
        for number, (begin, end) in enumerate(iterations)
        for place, (kind, path) in enumerate((("iteration", ""), ("stage", "inference"), ("layer", "program")))
    ]  # fmt: skip
    tables = {
        name: conform(name, frame.with_columns(pl.lit("trace").alias("pass")))
        for name, frame in collected.tables.items()
    }
    record = PassRecord(
        name="trace",
        main_tid=tid,
        iterations=[IterationRecord(number, False, None, False) for number in range(len(iterations))],
    )
    modules = pl.concat([empty("layers"), pl.DataFrame({"path": ["program"], "leaf": [True]})], how="diagonal")
    return sampled_pass(
        record,
        tables["samples"],
        conform("spans", pl.DataFrame(rows)),
        tables["kernels"],
        tables["switches"],
        tables["threads"],
        stacks=tables["stacks"],
        lifetimes=tables["lifetimes"],
        series=empty("series"),
        modules=modules,
        threads=2,
    )
