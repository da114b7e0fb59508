"""A case on one of a cluster's machines."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from hwprof import polars_memory
from hwprof.bench.case import LOG_FILE
from hwprof.bench.matrix import Case
from hwprof.bench.process import carry_out
from hwprof.bench.samples import largest_bytes_of
from hwprof.bench.store import LOCK_FILE, MACHINE_FILE, RESULT_FILE, MachineUsed, Settings
from hwprof.errors import HwprofError
from hwprof.hardware import machine
from hwprof.printable import one_line
from hwprof.session import peaks

PREFIX: Final = "hwprof-bench-"
"""Of folders for temporary files."""

OF_RAY: Final = "OMP_NUM_THREADS"
"""Ray sets it to the processors that a task has asked for; how many threads a case has is the case's."""


def measure(case: bytes, settings: bytes, folder: str) -> dict[str, bytes]:
    """The case's files, with its result and the machine's peaks among them. ``folder``: where the bench was begun."""
    wanted = msgspec.json.decode(case, type=Case)
    environment = {name: value for name, value in polars_memory.environment_of_models().items() if name != OF_RAY}
    how = msgspec.json.decode(settings, type=Settings)
    used = _used(peaks_too=how.peaks)
    with scratch(Path(tempfile.gettempdir())) as place:
        current = folder if Path(folder).is_dir() else str(place)
        found = carry_out(wanted, place, how, environment, current)
        files = files_in(place)
    files[RESULT_FILE] = msgspec.json.encode(msgspec.structs.replace(found, machine=os.uname().nodename))
    files[MACHINE_FILE] = msgspec.json.encode(used)
    return files


def files_in(place: Path) -> dict[str, bytes]:
    """What a case has left, but what is larger than anybody reads; its log says what that is."""
    files, left_out = {}, []
    for file in sorted(place.iterdir()):
        if file.name == LOCK_FILE or file.is_symlink() or not file.is_file():
            continue
        size_bytes = file.stat().st_size
        if size_bytes <= largest_bytes_of(file.name):
            files[file.name] = file.read_bytes()
        else:
            left_out.append(f"hwprof: {one_line(file.name)} has {size_bytes:,} bytes: left out\n")
    if left_out:
        files[LOG_FILE] = files.get(LOG_FILE, b"") + "".join(["\n", *left_out]).encode()
    return files


def _used(*, peaks_too: bool) -> MachineUsed:
    of = machine.describe()
    used = MachineUsed(machine=of)
    with suppress(HwprofError, OSError):
        if peaks_too:
            usual = peaks.usual_threads(of)
            used.peaks = peaks.kept(of, usual) or peaks.measure(of, usual)
    return used


@contextmanager
def scratch(parent: Path) -> Iterator[Path]:
    """An empty folder that goes afterwards. Those that a process left which was killed meanwhile go first: nobody holds
    their lock any more."""
    for left in parent.glob(f"{PREFIX}*"):
        if not left.is_symlink() and left.is_dir() and left.stat().st_uid == os.getuid():
            _remove_left(left)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=parent) as made:
        lock = os.open(Path(made) / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield Path(made)
        finally:
            os.close(lock)


def _remove_left(folder: Path) -> None:
    try:
        lock = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:  # one that is being made has none yet
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # somebody works in it
        pass
    finally:
        os.close(lock)
