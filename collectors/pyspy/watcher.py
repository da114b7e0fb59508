"""py-spy's process, which watches this one. It needs no privilege: a process may say who may look at it."""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hwprof.errors import HwprofError, first_line

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


def found() -> str | None:
    """The program: beside the running interpreter, else on the path."""
    scripts = sysconfig.get_path("scripts")
    return shutil.which(PROGRAM, path=scripts) or shutil.which(PROGRAM)


class Watcher:
    """py-spy from ``begin`` to ``end``."""

    def __init__(self, program: str, options: Sequence[str], file: Path) -> None:
        self.command = [program, "record", "--pid", str(os.getpid()), *options, "--output", str(file)]
        self._process: subprocess.Popen[bytes] | None = None
        self._said = b""

    def begin(self) -> None:
        """Returns when it looks at this process. Raises ``HwprofError``."""
        _may_watch(ANYBODY)
        try:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            _may_watch(self._process.pid)
            self._wait_for(BEGINS, BEGIN_S)
        except BaseException:
            self.kill()
            raise

    def end(self) -> None:
        """Returns when its file is written. Raises ``HwprofError``."""
        process = self._process
        if process is None:
            return
        process.send_signal(signal.SIGINT)
        try:
            said, _ = process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            raise HwprofError(f"py-spy did not end within {END_S:g} s") from None
        finally:
            self.kill()
        if process.returncode != 0:
            raise HwprofError(f"py-spy failed: {_reason(said, process.returncode)}")

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
        assert process is not None and process.stdout is not None
        deadline = time.monotonic() + seconds
        while text not in self._said:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not select.select([process.stdout], [], [], left_s)[0]:
                raise HwprofError(f"py-spy did not begin within {seconds:g} s")
            said = os.read(process.stdout.fileno(), 1 << 16)
            if not said:
                raise HwprofError(f"py-spy failed: {_reason(self._said, process.wait())}", "hwprof doctor")
            self._said += said


def _may_watch(pid: int) -> None:
    """From now on that process may, and no other one but those of root."""
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(pid), 0, 0, 0)


def _reason(said: bytes, status: int) -> str:
    lines = said.decode(errors="replace").replace("py-spy> ", "").strip()
    return first_line(ValueError(lines)) if lines else f"exit status {status}"
