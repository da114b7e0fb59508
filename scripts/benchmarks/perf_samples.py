"""What perf itself samples of a command, and what it calls it: for comparison with hwprof's samples."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import polars as pl

KERNEL: Final = "[kernel]"
UNKNOWN: Final = "[unknown]"

SAMPLE: Final = re.compile(r"\s*(\d+)/(\d+)\s+(\d+)\.(\d{9}):\s+([0-9a-f]+)\s+(.*)\s+\((.*)\)\s*")
"""``pid/tid seconds.nanoseconds: address symbol+offset (file)``"""

OFFSET: Final = re.compile(r"(.*)\+0x([0-9a-f]+)")

SCHEMA: Final = {"pid": pl.Int64, "tid": pl.Int64, "time_ns": pl.Int64, "start": pl.UInt64, "name": pl.String,
                 "library": pl.String}  # fmt: skip


def record(command: Sequence[str], frequency_hz: int, data: Path, cwd: Path) -> None:
    """Runs a command below ``perf record`` on cpu-clock, with times of the monotonic clock."""
    sampling = ["-q", "-k", "mono", "-e", "cpu-clock", "-F", str(frequency_hz), "-o", str(data)]
    subprocess.run(["perf", "record", *sampling, "--", *command], cwd=cwd, check=True, stdout=subprocess.DEVNULL)


def read(data: Path, pid: int, jit_names: Path | None) -> pl.DataFrame:
    """The samples of one process: pid, tid, time_ns, the address at which their function begins (null in the kernel and
    where perf knows no function), its name and its library. ``jit_names``: the map of JIT code that belongs to it."""
    fields = ["-F", "pid,tid,time,ip,sym,symoff,dso", "--ns", "--pid", str(pid)]
    with _map_in_place(pid, jit_names):
        done = subprocess.run(
            ["perf", "script", "-i", str(data), *fields], check=True, capture_output=True, text=True, errors="replace"
        )
    rows = [_row(found) for line in done.stdout.splitlines() if (found := SAMPLE.fullmatch(line))]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _row(found: re.Match[str]) -> tuple[int, int, int, int | None, str | None, str]:
    pid, tid, seconds, nanoseconds, address, symbol, file = found.groups()
    library = KERNEL if file.startswith("[kernel") or file.endswith(".ko") else "jit" if _is_jit(file) else file
    function = OFFSET.fullmatch(symbol)
    name, start = (function[1], int(address, 16) - int(function[2], 16)) if function else (None, None)
    time_ns = int(seconds) * 1_000_000_000 + int(nanoseconds)
    return int(pid), int(tid), time_ns, None if library == KERNEL else start, name, Path(library).name


def _is_jit(file: str) -> bool:
    return re.fullmatch(r".*/perf-\d+\.map", file) is not None


@contextmanager
def _map_in_place(pid: int, jit_names: Path | None) -> Iterator[None]:
    """The map where perf looks for it, for as long as that takes."""
    if jit_names is None or not jit_names.exists():
        yield
        return
    place = Path(f"/tmp/perf-{pid}.map")
    if place.exists():
        raise FileExistsError(f"{place} belongs to somebody else")
    shutil.copyfile(jit_names, place)
    os.chown(place, os.getuid(), os.getgid())  # perf takes no map of another user
    try:
        yield
    finally:
        place.unlink()
