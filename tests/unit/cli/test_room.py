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

from hwprof import polars_memory
from hwprof.cli import app, room
from hwprof.errors import MORE_PROCESSES, HwprofError
from hwprof.session import fork_server


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


@pytest.mark.parametrize(
    ("processors", "environment", "threads", "needed"),
    [
        (2, {}, None, 58),  # measured: 57
        (2, {}, 1, 56),  # 55
        (2, {}, 8, 70),  # 69
        (2, {"POLARS_MAX_THREADS": "4"}, None, 70),  # 68
        (2, {"POLARS_MAX_THREADS": "16"}, None, 142),  # 142
    ],
)
def test_what_measures_needs_the_threads_of_all_its_processes(
    processors: int, environment: dict[str, str], threads: int | None, needed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)))
    monkeypatch.delenv("POLARS_MAX_THREADS", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stack_bytes = threading.stack_size()
    _refuse_after(needed, monkeypatch)
    room.require_room_to_measure(threads)
    _refuse_after(needed - 1, monkeypatch)
    with pytest.raises(HwprofError, match=f"only {needed - 1} of the {needed} threads that are needed can be started"):
        room.require_room_to_measure(threads)
    assert threading.stack_size() == stack_bytes


def test_the_models_polars_has_a_thread_a_processor_where_hwprofs_own_has_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))
    monkeypatch.setenv("POLARS_MAX_THREADS", "4")
    monkeypatch.setattr(polars_memory, "environment_of_models", dict)
    _refuse_after(0, monkeypatch)
    with pytest.raises(HwprofError, match=f"only 0 of the {42 + 3 * (4 + 16) + 2 * 16} threads"):
        room.require_room_to_measure(None)


def _refuse_after(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[threading.Thread] = []

    def start(thread: threading.Thread) -> None:
        if len(started) == count:
            raise RuntimeError("can't start new thread")
        started.append(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    monkeypatch.setattr(threading.Thread, "join", lambda _: None)


def test_what_measures_is_refused_before_it_measures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Room for a report, and not for a measurement: it ended in panics, or never."""

    def few(needed: int) -> None:
        if needed > room.OF_COLLECT:
            raise HwprofError("only 30 of the threads", MORE_PROCESSES)

    monkeypatch.setattr(room, "_require_threads", few)
    monkeypatch.setattr(fork_server, "ForkServer", None)  # nothing is started
    assert app.run(["collect", "--model", "torch.nn:Identity", "--output", str(tmp_path / "new")]) == 1
    assert app.run(["explain", "cpi"]) == 0
    told = capsys.readouterr().err
    assert told == f"hwprof: only 30 of the threads. Try: {MORE_PROCESSES}\n"
    assert not (tmp_path / "new").exists()


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
