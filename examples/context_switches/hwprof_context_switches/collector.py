"""Voluntary and involuntary context switches of all threads of the worker, read from /proc in the supervisor."""

import re
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import polars as pl

from hwprof.collector.contract import Availability, Collected, Collector, Detail, PassContext

SWITCHES = re.compile(r"^(voluntary|nonvoluntary)_ctxt_switches:\s*(\d+)", re.MULTILINE)


class SwitchesDetail(Detail, kw_only=True, tag="context-switches"):
    """How often it was read, and how many switches there were in all, by kind."""

    period_ms: int
    switches: dict[str, int]


class ContextSwitches(Collector):
    """Reads the threads' status files from a thread of its own."""

    _thread: threading.Thread | None = None

    def availability(self) -> Availability:
        """Whether there is a Linux /proc."""
        there = Path("/proc/self/task").is_dir()
        return Availability() if there else Availability.no("/proc cannot be read", "mount -t proc proc /proc")

    def start(self, context: PassContext) -> None:
        """Reads from now on."""
        self._period_ms = context.options["switch_period"]
        self._rows: list[tuple[int, str, str, int]] = []
        self._most: dict[str, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, args=(context.pid,), daemon=True)
        self._thread.start()

    def stop(self) -> Collected:
        """The last reading, and all of them as a time series."""
        if self._thread is None:  # never started
            return Collected()
        self._ended.set()
        self._thread.join()
        series = pl.DataFrame(self._rows, schema=["time_ns", "name", "unit", "value"], orient="row")
        return Collected({"series": series}, detail=SwitchesDetail(period_ms=self._period_ms, switches=self._most))

    def _sample(self, pid: int) -> None:
        ended = False
        while not ended:
            ended = self._ended.wait(self._period_ms / 1e3)
            switches: Counter[str] = Counter()
            for status in Path(f"/proc/{pid}/task").glob("*/status"):
                with suppress(OSError):  # the thread has ended
                    switches.update({kind: int(count) for kind, count in SWITCHES.findall(status.read_text())})
            for kind, number in switches.items():
                self._rows.append((time.monotonic_ns(), f"switches/{kind}", "1", number))
                self._most[kind] = max(number, self._most.get(kind, 0))  # those of ended threads are gone
