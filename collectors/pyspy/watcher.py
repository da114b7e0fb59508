"""py-spy's process, which watches this one. It needs no privilege: a process may say who may look at it."""

from __future__ import annotations

import ctypes
import os
import re
import select
import shutil
import signal
import subprocess
import sysconfig
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from hwprof.errors import HwprofError, first_line
from hwprof.helper_threads import HelperThread
from hwprof.printable import printable

PROGRAM: Final = "py-spy"

PR_SET_PTRACER: Final = 0x59616D61
"""prctl(2); where Yama does not restrict anybody (or is not there) it is refused, and not needed."""

ANYBODY: Final = 2**64 - 1
NOBODY: Final = 0

BEGINS: Final = b"Sampling process"
"""What py-spy says once it looks."""

BEGIN_S: Final = 20.0
END_S: Final = 20.0
"""As long as it may take for that, and to write its file."""

SAID: Final = re.compile(rb"Samples: (\d{1,18}) Errors: (\d{1,18})")
"""In the lines that it ends with."""

BEHIND: Final = re.compile(rb"(\d{1,9}(?:\.\d{1,9})?)s behind in sampling")
"""While it works, at most once a second: by how much a look is late, where that is more than a second. After a pause
the first look is the latest, and the one that is told."""

LOOK_EVERY_MS: Final = 50
"""Whether it is gone, while it says nothing."""

TAIL_BYTES: Final = 4096
"""Of what it says, that are kept: it may say the same for ever."""


class Looks(NamedTuple):
    """What py-spy says of its looks."""

    stacks: int  # that it saw: one of each thread and look
    failed: int  # looks that failed: of all threads at once
    behind_s: float = 0.0  # how late one was at most; 0: none by more than a second, less it does not tell


def found() -> str | None:
    """The program: beside the running interpreter, else on the path."""
    scripts = sysconfig.get_path("scripts")
    return shutil.which(PROGRAM, path=scripts) or shutil.which(PROGRAM)


def behind_s(said: bytes) -> float:
    """How late a look was at most, in seconds, by what py-spy said; 0: it says of none."""
    return max(map(float, BEHIND.findall(said)), default=0.0)


class Watcher:
    """py-spy from ``begin`` to ``end``."""

    def __init__(
        self, program: str, options: Sequence[str], file: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``clock``: bound before the model's code runs, which may put another one into ``time``."""
        self._clock = clock
        self.command = [program, "record", "--pid", str(os.getpid()), *options, "--output", str(file)]
        self._process: subprocess.Popen[bytes] | None = None
        self._said = b""
        self._behind_s = 0.0

    def begin(self) -> None:
        """Returns when it looks at this process. Raises ``HwprofError``."""
        _may_watch(ANYBODY)
        try:
            self._process = _spawned(self.command)
            _may_watch(self._process.pid)
            self._wait_for(BEGINS, BEGIN_S)
            self._said = self._said.partition(BEGINS)[2]
        except BaseException:
            self.kill()
            raise

    @property
    def pid(self) -> int | None:
        """Of the process, where it is at work."""
        return self._process.pid if self._process is not None else None

    def end(self) -> Looks | None:
        """Returns when its file is written; None where it says nothing of its looks. Raises ``HwprofError``."""
        process = self._process
        if process is None:
            return None
        if process.poll() is not None:
            self.kill()
            raise HwprofError(f"py-spy ended before the pass did, status {process.returncode}")
        process.send_signal(signal.SIGINT)
        deadline = self._clock() + END_S
        try:
            while self._hears(deadline):
                pass
            process.wait(max(0.0, deadline - self._clock()))
        except (TimeoutError, subprocess.TimeoutExpired):
            raise HwprofError(f"py-spy did not end within {END_S:g} s") from None
        finally:
            self.kill()
        if process.returncode != 0:
            _, _, said_since = self._said.partition(b"\n")  # the line in which it began is no reason
            raise HwprofError(f"py-spy failed: {_reason(said_since, process.returncode)}")
        said = SAID.findall(self._said)
        if not said:
            return None
        stacks, failed = map(int, said[-1])
        return Looks(stacks, failed, self._behind_s)

    def kill(self) -> None:
        """It is gone, whatever it does."""
        process, self._process = self._process, None
        _may_watch(NOBODY)
        if process is None:
            return
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def _wait_for(self, text: bytes, seconds: float) -> None:
        process = self._process
        assert process is not None
        deadline = self._clock() + seconds
        try:
            while text not in self._said:
                if not self._hears(deadline):
                    raise HwprofError(f"py-spy failed: {_reason(self._said, process.wait())}", "hwprof doctor")
        except TimeoutError:
            raise HwprofError(f"py-spy did not begin within {seconds:g} s") from None

    def _hears(self, deadline: float) -> bool:
        """Waits for what it says; false: it says no more. Raises ``TimeoutError``."""
        assert self._process is not None and self._process.stdout is not None
        says = select.poll()  # select() knows no descriptor beyond 1023, and counters may have as many
        says.register(self._process.stdout, select.POLLIN)
        while not says.poll(LOOK_EVERY_MS):
            if self._process.poll() is not None:
                return False  # though a child of its own may hold its output
            if self._clock() > deadline:
                raise TimeoutError
        if self._clock() > deadline:
            raise TimeoutError
        said = os.read(self._process.stdout.fileno(), TAIL_BYTES)
        self._said += said
        self._behind_s = max(self._behind_s, behind_s(self._said))
        self._said = self._said[-2 * TAIL_BYTES :]  # so that no word is cut where it is looked for
        return bool(said)


def _spawned(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """The process. It inherits the signals that whoever starts it has blocked, the model's code for instance, and would
    never hear that it shall end: so a thread starts it that blocks none."""

    def spawn() -> subprocess.Popen[bytes]:
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    return HelperThread(spawn).result()


def _may_watch(pid: int) -> None:
    """From now on that process may, and no other one but those of root."""
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(pid), 0, 0, 0)


def _reason(said: bytes, status: int) -> str:
    """The first of its last lines that is whole, and text."""
    if len(said) > TAIL_BYTES:
        said = said[-TAIL_BYTES:].partition(b"\n")[2]
    lines = [line for line in said.decode(errors="replace").splitlines() if "\ufffd" not in line]
    text = "\n".join(lines).replace("py-spy> ", "").strip()
    return printable(first_line(ValueError(text))) if text else f"exit status {status}"
