"""A case in a process of its own, as a user starts it: what measures starts others, and is ended in many ways."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from scripts.faults.case import Case, Outcome

ROOT: Final = Path(__file__).parents[2]
MARK: Final = "HWPROF_FAULTS_CASE"
"""In the environment of all processes of a case."""

LOOK_EVERY_S: Final = 0.005
LEFT_AFTER_S: Final = 3.0


class Fresh:
    """In the place of ``warm.Warm``."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def carry_out(self, case: Case, folder: Path) -> Outcome:
        """The case in its folder, to its end."""
        mark = uuid.uuid4().hex
        begin = time.monotonic()
        with (folder / ".out").open("wb") as out, (folder / ".err").open("wb") as err:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "hwprof", *case.arguments],
                cwd=folder,
                env=_environment(case, folder, mark),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                preexec_fn=_limited(case),
                start_new_session=True,
            )
        timed_out = not _ended(process, case, begin)
        if timed_out:
            process.kill()
        status = process.wait()
        outcome = Outcome(
            code=128 - status if status < 0 else status,
            out=_text(folder / ".out"),
            err=_text(folder / ".err"),
            seconds=time.monotonic() - begin,
            peak_bytes=0,
            timed_out=timed_out,
        )
        outcome.left = _left(mark)
        return outcome


def _environment(case: Case, folder: Path, mark: str) -> dict[str, str]:
    place = folder / ".tmp"
    place.mkdir(exist_ok=True)
    own = {
        "HOME": str(folder), "XDG_CACHE_HOME": str(folder.parent / "cache"), "TMPDIR": str(place), "COLUMNS": "100",
        "PYTHONPATH": str(ROOT), MARK: mark,
    }  # fmt: skip
    wanted: dict[str, str | None] = {**os.environ, **own, **case.environment}
    return {name: value for name, value in wanted.items() if value is not None}


def _limited(case: Case) -> Callable[[], None] | None:
    limits = [(getattr(resource, name), limit) for name, limit in case.limits.items()]

    def limit() -> None:
        for number, value in limits:
            resource.setrlimit(number, (value, value))

    return limit if limits else None


def _ended(process: subprocess.Popen[bytes], case: Case, begin: float) -> bool:
    """Whether it ended in time; the signals of the case are sent meanwhile."""
    waiting = list(case.signals)
    while process.poll() is None:
        passed_s = time.monotonic() - begin
        if passed_s > case.limit_s:
            return False
        if waiting and passed_s >= waiting[0][1]:
            process.send_signal(signal.Signals[waiting.pop(0)[0]])
        time.sleep(LOOK_EVERY_S)
    return True


def _left(mark: str) -> list[str]:
    """The processes of the case that live on, after some seconds; they are ended."""
    deadline = time.monotonic() + LEFT_AFTER_S
    while (found := _of_case(mark)) and time.monotonic() < deadline:
        time.sleep(10 * LOOK_EVERY_S)
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    return list(found.values())


def _of_case(mark: str) -> dict[int, str]:
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes():
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(folder.name)] = command.decode(errors="replace")
        except OSError:  # it ended meanwhile
            continue
    return found


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="surrogateescape")
