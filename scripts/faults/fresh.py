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

from scripts.faults.case import Case, Outcome, text_of
from scripts.faults.disks import slow_environment
from scripts.faults.left_alive import left_alive
from scripts.faults.processor_waits import ProcessorWaits

ROOT: Final = Path(__file__).parents[2]
MARK: Final = "HWPROF_FAULTS_CASE"
"""In the environment of all processes of a case."""

NO_INTERPRETER: Final = "Fatal Python error: init_import_site"
"""A signal ended Python's own start, of which hwprof has no part."""

LOOK_EVERY_S: Final = 0.005


class Fresh:
    """In the place of ``warm.Warm``."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def carry_out(self, case: Case, folder: Path) -> list[Outcome]:
        """The case in its folder, to its end: of each process that does it at the same moment."""
        mark = uuid.uuid4().hex
        begin = time.monotonic()
        outputs = [folder / f".out{number or ''}" for number in range(1 + case.beside)]
        processes = [_started(case, folder, mark, out) for out in outputs]
        outcomes = []
        for process, out in zip(processes, outputs, strict=True):
            timed_out, status, used = _ended(process, case, begin)
            outcomes.append(
                Outcome(
                    code=128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status),
                    out=text_of(out, case),
                    err=text_of(_errors(out), case),
                    seconds=time.monotonic() - begin,
                    peak_bytes=used.ru_maxrss << 10,
                    timed_out=timed_out,
                    unheard=os.WIFSIGNALED(status) and not any((folder / "results").glob("*")),
                )
            )
            if case.signals and outcomes[-1].err.startswith(NO_INTERPRETER):
                outcomes[-1].err, outcomes[-1].unheard = "", True
        outcomes[-1].left = left_alive(lambda one: f"{MARK}={mark}".encode() in (one / "environ").read_bytes())
        return outcomes


def _started(case: Case, folder: Path, mark: str, out_file: Path) -> subprocess.Popen[bytes]:
    with out_file.open("wb") as out, _errors(out_file).open("wb") as err:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "hwprof", *case.arguments],
            cwd=folder,
            env=_environment(case, folder, mark),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            preexec_fn=_limited(case),
            start_new_session=True,
        )


def _errors(out: Path) -> Path:
    return out.with_name(out.name.replace("out", "err"))


def _environment(case: Case, folder: Path, mark: str) -> dict[str, str]:
    place = folder / ".tmp"
    place.mkdir(exist_ok=True)
    own = {
        "HOME": str(folder), "XDG_CACHE_HOME": str(folder.parent / "cache"), "TMPDIR": str(place), "COLUMNS": "100",
        "PYTHONPATH": str(ROOT), MARK: mark, **slow_environment(case),
    }  # fmt: skip
    wanted: dict[str, str | None] = {**os.environ, **own, **case.environment}
    return {name: value for name, value in wanted.items() if value is not None}


def _limited(case: Case) -> Callable[[], None] | None:
    limits = [(getattr(resource, name), limit) for name, limit in case.limits.items()]

    def limit() -> None:
        for number, value in limits:
            resource.setrlimit(number, (value, value))

    return limit if limits else None


def _ended(process: subprocess.Popen[bytes], case: Case, begin: float) -> tuple[bool, int, resource.struct_rusage]:
    """Whether it took too long and was ended, how it ended, and what it and those that it waited for have used; the
    signals of the case are sent meanwhile."""
    waiting, timed_out, waits = list(case.signals), False, ProcessorWaits(process.pid)
    while True:
        done, status, used = os.wait4(process.pid, os.WNOHANG)
        if done:
            process.returncode = status  # nobody else is to wait for it
            return timed_out, status, used
        passed_s = time.monotonic() - begin
        if not timed_out and waits.too_long(case.limit_s):
            timed_out = True
            os.kill(process.pid, signal.SIGKILL)
        if waiting and passed_s >= waiting[0][1]:
            os.kill(process.pid, signal.Signals[waiting.pop(0)[0]])  # ``send_signal`` would wait for it
        time.sleep(LOOK_EVERY_S)
