"""Voluntary and involuntary context switches of all threads of the worker, read from /proc in the supervisor."""

import threading
import time
from pathlib import Path

import polars as pl

from hwprof.collector.contract import Availability, Collected, Collector, Detail, PassContext

KINDS = ("voluntary", "nonvoluntary")


class SwitchesDetail(Detail, kw_only=True, tag="context-switches"):
    """How often it was read, and how many switches there were in all, by kind."""

    period_ms: int
    switches: dict[str, int]


class ContextSwitches(Collector):
    """Reads the threads' status files from a thread of its own."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, str, float]] = []
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def availability(self) -> Availability:
        """Whether there is a Linux /proc."""
        if not Path("/proc/self/task").is_dir():
            return Availability.no("/proc cannot be read", "mount -t proc proc /proc")
        return Availability()

    def start(self, context: PassContext) -> None:
        """Reads from now on."""
        self._period_ms = context.options["switch_period"]
        self._thread = threading.Thread(target=self._sample, args=(context.pid,), daemon=True)
        self._thread.start()

    def stop(self) -> Collected:
        """The last reading, and all of them as a time series."""
        if self._thread is None:
            return Collected()
        self._ended.set()
        self._thread.join()
        columns = {"time_ns": pl.Int64, "name": pl.String, "value": pl.Float64}
        series = pl.DataFrame(self._rows, schema=columns, orient="row").with_columns(unit=pl.lit("1"))
        last = {kind: int(series.filter(name=f"switches/{kind}")["value"].max() or 0) for kind in KINDS}
        return Collected({"series": series}, detail=SwitchesDetail(period_ms=self._period_ms, switches=last))

    def _sample(self, pid: int) -> None:
        while True:
            ended = self._ended.wait(self._period_ms / 1e3)
            lines = [line for task in Path(f"/proc/{pid}/task").glob("*") for line in _lines(task / "status")]
            for kind in KINDS:
                found = [int(line.split()[1]) for line in lines if line.startswith(f"{kind}_ctxt_switches")]
                if found:
                    self._rows.append((time.monotonic_ns(), f"switches/{kind}", float(sum(found))))
            if ended:
                return


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:  # the thread has ended
        return []
