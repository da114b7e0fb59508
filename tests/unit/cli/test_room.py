"""Where no threads can be started, one line says so before any library finds out."""

from __future__ import annotations

import os
import re
import resource
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from hwprof.cli import app, room
from hwprof.errors import HwprofError


def test_there_is_room_and_nothing_is_left_of_the_look() -> None:
    before, begin_s = set(threading.enumerate()), time.process_time()
    room.require_room()
    assert set(threading.enumerate()) <= before and time.process_time() - begin_s < 1


def test_too_little_room_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    real: Any = threading.Thread.start
    started: list[threading.Thread] = []

    def start(thread: threading.Thread) -> None:
        if len(started) == 5:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(HwprofError, match="only 5 of the 16 threads that are needed can be started here"):
        room.require_room()
    assert not any(thread.is_alive() for thread in started)
    started.clear()
    assert app.run(["explain", "cpi"]) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "ulimit -u" in told
    assert app.run(["--help"]) == 0


def test_too_few_descriptors_are_told_before_polars_panics(capfd: pytest.CaptureFixture[str]) -> None:
    """The campaign of faults met 921 lines of its panics: ``report --all`` with RLIMIT_NOFILE 6."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (free + 3, limits[1]))
        codes = [app.run(["explain", "cpi"]), app.run(["events"])]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert codes == [1, 1]
    told = r"hwprof: only [0-3] of the 8 more file descriptors that are needed can be opened here\. Try: .*ulimit -n\n"
    assert re.fullmatch(f"({told}){{2}}", capfd.readouterr().err)
    before = set(Path("/proc/self/fd").iterdir())
    room.require_room()
    assert set(Path("/proc/self/fd").iterdir()) == before


def test_an_address_space_that_is_limited_is_no_lack_of_processes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (100_000 << 10, resource.RLIM_INFINITY))
    assert app.run(["explain", "cpi"]) == 1
    told = capsys.readouterr().err
    assert (
        told == "hwprof: 97 MiB of address space are allowed here, and 2048 MiB needed. Try: ulimit -v unlimited;"
        " a container's limit is one of memory\n"
    )
    monkeypatch.setattr(resource, "getrlimit", lambda which: (room.ADDRESS_SPACE_BYTES, resource.RLIM_INFINITY))
    assert app.run(["explain", "cpi"]) == 0
