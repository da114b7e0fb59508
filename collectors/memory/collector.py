"""The memory collector: resident memory, proportional memory (PSS) and page faults of the worker over time.

It samples /proc/PID from the supervisor. PSS is asked for rarely, because for it the kernel walks the process's page
tables and holds the lock of its address space meanwhile.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import polars as pl

from collectors.shared.periodic_sampling import PeriodicCollector
from hwprof.collector.contract import Availability, Collected, Note, PassContext, Unavailable
from hwprof.run.details import MemoryDetail
from hwprof.run.schema import conform

PERIOD_S: Final = 0.050
PSS_PERIOD_S: Final = 1.0

RSS: Final = "memory/rss"
PSS: Final = "memory/pss"
PAGE_FAULTS: Final = "memory/page-faults"
UNITS: Final = {RSS: "B", PSS: "B", PAGE_FAULTS: "1/s"}

_PEAK: Final = re.compile(rb"^VmHWM:\s+(\d+) kB", re.MULTILINE)
_LINE: Final = re.compile(rb"^(Pss|Pss_Anon|Anonymous):\s+(\d+) kB", re.MULTILINE)
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


class MemoryLog:
    """The samples of one process, read from ``folder`` (/proc/PID). The times are ``clock_ns``'s."""

    def __init__(self, folder: Path, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._folder = folder
        self._clock_ns = clock_ns
        self._rows: list[tuple[int, str, float]] = []
        self._faults: tuple[int, int] | None = None  # time in ns, faults so far
        self._pss_due_ns = 0
        self.pss_refused: str | None = None
        # Open files stay with this process: if its number is given to another one, reading fails instead.
        self._files = {name: os.open(folder / name, os.O_RDONLY | os.O_CLOEXEC) for name in ("statm", "stat")}
        with suppress(FileNotFoundError):
            self._files["status"] = os.open(folder / "status", os.O_RDONLY | os.O_CLOEXEC)

    def sample(self) -> bool:
        """Takes the values that are due; False once the process has ended."""
        try:
            now_ns = self._clock_ns()
            pages = parse_resident_pages(self._read("statm"))
            faults = parse_faults(self._read("stat"))
            if pages == 0:  # a process that has ended, but not been waited for, has no memory any more
                return False
            self._rows.append((now_ns, RSS, float(pages * _PAGE_BYTES)))
            if self._faults is not None and now_ns > self._faults[0]:
                rate = (faults - self._faults[1]) / (now_ns - self._faults[0]) * 1e9
                self._rows.append((now_ns, PAGE_FAULTS, rate))
            self._faults = (now_ns, faults)
            if self.pss_refused is None and now_ns >= self._pss_due_ns:
                self._sample_pss(now_ns)
        except (ProcessLookupError, ValueError):
            return False
        return True

    def _sample_pss(self, now_ns: int) -> None:
        self._pss_due_ns = now_ns + int(PSS_PERIOD_S * 1e9)
        try:  # opened each time, since an open smaps_rollup would stay with the program from before an exec
            pss_bytes = parse_pss_bytes((self._folder / "smaps_rollup").read_bytes())
        except ProcessLookupError:
            raise
        except OSError as error:  # also where this process may open no more files
            self.pss_refused = error.strerror
            return
        if pss_bytes is not None:
            self._rows.append((now_ns, PSS, float(pss_bytes)))

    def series(self) -> pl.DataFrame:
        """Rows of ``series``, by time."""
        frame = pl.DataFrame(
            self._rows, schema={"time_ns": pl.Int64, "name": pl.String, "value": pl.Float64}, orient="row"
        )
        return conform("series", frame.with_columns(unit=pl.col("name").replace_strict(UNITS, return_dtype=pl.String)))

    def peak_rss_bytes(self) -> int | None:
        """The most that was resident at any time; None where the process has ended, or the kernel does not say."""
        try:
            return parse_peak_bytes(self._read("status"))
        except (OSError, KeyError):
            return None

    def close(self) -> None:
        """Gives the files back."""
        for handle in self._files.values():
            os.close(handle)
        self._files.clear()

    def _read(self, name: str) -> bytes:
        return os.pread(self._files[name], 4096, 0)


def parse_resident_pages(statm: bytes) -> int:
    """The resident pages of /proc/PID/statm; raises ``ValueError`` on anything else."""
    fields = statm.split()
    if len(fields) < 2:
        raise ValueError(f"not a statm: {statm!r}")
    return int(fields[1])


def parse_peak_bytes(status: bytes) -> int | None:
    """The high-water mark of /proc/PID/status; None where the process has no memory any more."""
    found = _PEAK.search(status)
    return int(found[1]) * 1024 if found else None


def parse_faults(stat: bytes) -> int:
    """Minor and major faults of all threads so far, from /proc/PID/stat; the name in it may contain anything."""
    fields = stat.rpartition(b")")[2].split()
    if len(fields) < 10:
        raise ValueError(f"not a stat: {stat!r}")
    return int(fields[7]) + int(fields[9])


def parse_pss_bytes(smaps_rollup: bytes) -> int | None:
    """The proportional set size of /proc/PID/smaps_rollup, with anonymous memory counted whole: the worker shares it
    with no other program, but until it is written to with the process of hwprof's that it is a copy of. (A kernel that
    does not tell the anonymous part, before 5.3, makes no such copies: it has no pidfd_open.) None where the process
    has no memory any more."""
    found = {name: int(kib) * 1024 for name, kib in _LINE.findall(smaps_rollup)}
    if b"Pss" not in found:
        return None
    own = found.get(b"Anonymous", 0) - found[b"Pss_Anon"] if b"Pss_Anon" in found else 0
    return found[b"Pss"] + own


class MemoryCollector(PeriodicCollector[MemoryLog]):
    """Samples the worker's resident memory and page faults 20 times a second, its PSS once a second."""

    _period_s = PERIOD_S
    _reads_at_end = False
    _peak_bytes: int | None = None

    _work_end_ns: int | None = None

    def work_ends(self) -> None:
        """The worker still is: at the end of the pass it may be gone. What it takes from now on is for hwprof's own
        tables."""
        self._peak_bytes = self._log.peak_rss_bytes() if self._log is not None else None
        self._work_end_ns = time.monotonic_ns()

    def availability(self) -> Availability:
        """Whether there is a Linux /proc."""
        try:
            parse_resident_pages(Path("/proc/self/statm").read_bytes())
        except (OSError, ValueError) as error:
            return Availability.no(f"/proc cannot be read ({error})", "mount -t proc proc /proc")
        return Availability()

    def _open(self, context: PassContext) -> MemoryLog:
        return MemoryLog(Path(f"/proc/{context.pid}"))

    def _collected(self, log: MemoryLog) -> Collected:
        notes = [Note.not_available(PSS, Unavailable(log.pss_refused))] if log.pss_refused else []
        peak_bytes = self._peak_bytes or log.peak_rss_bytes()
        series = log.series()
        if self._work_end_ns is not None:
            series = series.filter(pl.col("time_ns") <= self._work_end_ns)
        detail = MemoryDetail(period_ms=self._period_s * 1e3, peak_rss_bytes=peak_bytes, page_bytes=_PAGE_BYTES)
        return Collected(tables={"series": series}, notes=notes, detail=detail)

    def _close(self, log: MemoryLog) -> None:
        log.close()
