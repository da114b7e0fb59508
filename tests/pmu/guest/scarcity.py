"""Jobs in which somebody else holds counters of the only processor."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from collectors.perf.collector import PerfCollector
from hwprof.hardware import perf_event
from tests.pmu.guest.lifecycles import CORE, INSTRUCTIONS, Lifecycle, context, counted_in_turn, rows
from tests.pmu.guest.loops import loop
from tests.support.reported import fields, texts


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
        result["starved_detail"] = fields(starved.availability().detail)
    with subprocess.Popen(
        [sys.executable, "-m", "tests.pmu.guest", "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None and other.stdin is not None
        other.stdout.readline()
        collector = PerfCollector()
        collector.start(context(kernel=False, events=[*CORE, *INSTRUCTIONS]))
        result["three_left"] = counted_in_turn(collector, 1_000_000) | {"other": other.pid}
        other.stdin.close()
    collector = PerfCollector()
    collector.start(context(kernel=False, events=CORE))
    lifecycle = Lifecycle(collector)
    collector.begin_iteration(0)
    with held_counters(instructions=6):
        first = lifecycle.edge(lifecycle.full)
        loop(20_000_000)
        lifecycle.span(first, lifecycle.edge(lifecycle.full))
    stopped = collector.stop()
    result["robbed_rows"], result["robbed_notes"] = rows(collector, lifecycle.spans), texts(stopped.notes)
    return result


def hold() -> dict[str, Any]:
    """Holds three counters until its input is closed."""
    with held_counters(instructions=3):
        print("held", flush=True)
        sys.stdin.read()
    return {}
