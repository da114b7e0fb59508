"""A process with busy threads that does what it is told, and a sampler that watches it from beside it."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from collectors.sampler.collector import SamplerCollector
from hwprof.collector.contract import Collected, PassContext
from tests.support.requirements import missing

FREQUENCY_HZ = 999
BUSY_S = 0.5


RACE_S = 0.005
"""What a thread may have done before its creation was seen by a sampler that did not have to wait for a processor, and
whose code was not out of all caches."""


WORK = """
    import json, resource, sys, threading, time

    def busy(seconds):
        begin, before = time.monotonic_ns(), time.thread_time()
        while time.thread_time() < before + seconds:
            sum(range(2000))
        used = resource.getrusage(resource.RUSAGE_THREAD)
        switches = used.ru_nvcsw + used.ru_nivcsw
        told[threading.get_native_id()] = [begin, time.monotonic_ns(), time.thread_time() - before, switches]

    def thread(seconds):
        made = threading.Thread(target=busy, args=(seconds,))
        made.start()
        return made

    told = {}
    early = threading.Event()
    waiting = threading.Thread(target=lambda: (early.wait(), busy(SECONDS)), daemon=True)
    waiting.start()
    print("ready", flush=True)
    for line in sys.stdin:
        eval(line)
        print(json.dumps(told), flush=True)
"""
Told = dict[str, tuple[int, int, float, int]]


class Worker:
    """A process that does what it is told, line by line."""

    def __init__(self) -> None:
        code = textwrap.dedent(WORK).replace("SECONDS", str(BUSY_S))
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._heard()

    def do(self, expression: str) -> Told:
        """What each thread told so far: begin and end (ns), processor time (s), how often it was switched out."""
        assert self.process.stdin is not None
        self.process.stdin.write(expression + "\n")
        self.process.stdin.flush()
        told: Told = json.loads(self._heard())
        return told

    def end(self) -> None:
        """It comes to its own end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def _heard(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()


Start = Callable[..., SamplerCollector]


def of(collected: Collected, tid: int | str) -> pl.DataFrame:
    """The samples of a thread."""
    return collected.tables["samples"].filter(pl.col("tid") == int(tid))


@contextmanager
def worker_process() -> Iterator[Worker]:
    """Ended with the block."""
    made = Worker()
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait()
        for pipe in (made.process.stdin, made.process.stdout):
            assert pipe is not None
            pipe.close()


def starter(worker: Worker, folder: Path) -> Start:
    """What starts a sampler of the worker, which keeps its files in that folder."""

    def started(**options: Any) -> SamplerCollector:
        sampler = SamplerCollector()
        available = sampler.availability()
        if not available.ok:
            missing(f"perf events ({available.reason})")
        pid = worker.process.pid
        sampler.start(PassContext("trace", pid, pid, folder, {"frequency": FREQUENCY_HZ, **options}))
        return sampler

    return started
