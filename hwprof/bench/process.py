"""One case from its start to its result: pyperf's manager, in a process of its own, and what it and its processes
leave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from hwprof import polars_memory, processes
from hwprof.bench.case import LOG_FILE, PROGRAM
from hwprof.bench.energy import Reading
from hwprof.bench.matrix import Case
from hwprof.bench.result import Result, measured
from hwprof.bench.samples import FACTS_FILE, FAILURE_FILE, LARGEST_BYTES, Failure, Model, samples_in
from hwprof.bench.store import PYPERF_FILE, Settings
from hwprof.errors import HwprofError
from hwprof.printable import one_line
from hwprof.run import foreign_json
from hwprof.run.regular_files import read_regular
from hwprof.session.bounded_log import BoundedLog
from hwprof.session.quiet import Others
from hwprof.workload.runtimes.temporary import TEMPORARY, remove_exported

CASE_FILE: Final = "case.json"
LOOK_EVERY_S: Final = 0.2

LAST_WORDS: Final = 4096
"""Bytes of the log, of which the last line is the reason where nothing else is."""

TIMED_OUT: Final = 124
"""pyperf's exit code where a process took longer than it may."""


def carry_out(
    case: Case,
    folder: Path,
    settings: Settings,
    environment: Mapping[str, str] | None = None,
    current: str | None = None,
) -> Result:
    """Its result, which says why where it failed. ``folder``: empty; ``environment`` and ``current`` folder: instead of
    this process's. Raises ``OSError``; whatever it raises, no process is left."""
    (folder / CASE_FILE).write_bytes(msgspec.json.encode(case))
    others = Others()
    created, began_s = datetime.now().astimezone().isoformat(timespec="seconds"), time.monotonic()
    own = {**(environment or polars_memory.environment_of_models()), **case.environment}
    with Reading(settings.power, folder) as reading:
        status, last_words = _status(_command(folder.resolve(), settings), folder, own, current)
    seconds, share = time.monotonic() - began_s, others.share()
    try:
        if status == 0:
            model = foreign_json.decode(read_regular(folder / FACTS_FILE, LARGEST_BYTES), Model)
            samples = samples_in(folder)
            energy = reading.of_images(samples, model.images)
            return measured(case, created, seconds, model, samples, share, energy)
        failure = _failure(folder, status, settings, last_words)
    except (OSError, msgspec.MsgspecError, ValueError) as error:  # a model's code has the process
        failure = Failure(f"what its processes left cannot be read: {one_line(str(error))}")
    return Result(case=case, created=created, seconds=seconds, failure=failure)


def _status(
    command: list[str], folder: Path, environment: Mapping[str, str], current: str | None
) -> tuple[int, str | None]:
    """Its exit code, and the last line that it or its processes printed."""
    with closing(BoundedLog(folder / LOG_FILE)) as log:
        process = subprocess.Popen(
            command,
            env={**environment, TEMPORARY: str(folder.resolve())},
            cwd=current,
            stdin=subprocess.DEVNULL,
            stdout=log.fileno(),
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for who waits, and its processes are one group
        )
        log.start()
        try:
            status = _waited_for(process)
        finally:
            processes.kill(processes.descendants(process.pid))
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            remove_exported(folder)
        return status, _last_line(log.fileno())


def _last_line(log: int) -> str | None:
    """Of an open file."""
    size_bytes = os.fstat(log).st_size
    last = os.pread(log, LAST_WORDS, max(0, size_bytes - LAST_WORDS))
    lines = last.decode(errors="replace").strip().splitlines()
    return one_line(lines[-1]) if lines else None


def _waited_for(process: subprocess.Popen[bytes]) -> int:
    """Its exit code. Looked at again and again: polars has a wait that a signal interrupts begin anew, and Ctrl-C would
    be heard at its end."""
    while True:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(LOOK_EVERY_S)


def _command(folder: Path, settings: Settings) -> list[str]:
    return [
        sys.executable,
        *PROGRAM,
        *("--quiet", "--copy-env", "--output", str(folder / PYPERF_FILE)),
        *("--processes", str(settings.processes), "--values", str(settings.values)),
        *("--warmups", str(settings.warmups), "--min-time", str(settings.min_time_s)),
        *("--timeout", str(settings.timeout_s)),
        *(str(folder / CASE_FILE), str(folder)),
    ]


def _failure(folder: Path, status: int, settings: Settings, last_words: str | None) -> Failure:
    with suppress(OSError, msgspec.MsgspecError):
        return foreign_json.decode(read_regular(folder / FAILURE_FILE, LARGEST_BYTES), Failure)
    if status == TIMED_OUT:
        return Failure(f"a process took longer than {settings.timeout_s:,} s", "--timeout")
    how = f"exit code {status}" if status > 0 else f"signal {-status}"
    return Failure(last_words or f"it ended with {how}")


def require_pyperf() -> None:
    """Raises ``HwprofError`` where it is not installed."""
    from importlib.util import find_spec

    from hwprof import packages

    if find_spec("pyperf") is None:
        raise HwprofError("pyperf is not installed", packages.BENCH)
