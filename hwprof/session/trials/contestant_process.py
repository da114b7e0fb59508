"""A process in which the workload is done with or without a remedy, as who gives the turns has it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from hwprof import processes
from hwprof.errors import HwprofError
from hwprof.printable import one_line
from hwprof.workload.contest import END, TURN, Entry, Measured, Ready, Refused, Said, decode

LONGEST_LINE: Final = 1 << 20
LOOK_EVERY_MS: Final = 100
KILL_AFTER_S: Final = 2.0
LAST_WORDS: Final = 4096
"""Bytes of what it printed, of which the last line is the reason where it gives none."""


class ContestantProcess:
    """Stopped (SIGSTOP, with all that it started) whenever it is not its turn: no thread of it that spins or collects
    garbage takes time from another's turn."""

    def __init__(self, entry: Entry, folder: Path, name: str, environment: Mapping[str, str], weights: int) -> None:
        """``folder``: for its order and its log, under ``name``; ``weights``: a descriptor that all share. Raises
        ``OSError``."""
        self._log = folder / f"{name}.log"
        order = folder / f"{name}.json"
        entry.write(order)
        self._hears, says = os.pipe()
        hears, self._tells = os.pipe()
        self._rest = b""
        descriptors = (says, hears, weights)
        try:
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    processes.command("hwprof.workload.contestant", str(order), *map(str, descriptors)),
                    env=os.environ | environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    pass_fds=descriptors,
                    start_new_session=True,  # Ctrl-C is the parent's to handle
                )
        except BaseException:
            os.close(self._hears)
            os.close(self._tells)
            raise
        finally:
            os.close(says)
            os.close(hears)

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    def wait_until_ready(self, limit_s: float) -> None:
        """It has warmed up, and is stopped. Raises ``HwprofError`` where it gives up, dies, or takes longer."""
        if not isinstance(self._next(limit_s, "was not ready"), Ready):
            raise HwprofError("it spoke out of turn")
        self._signal(signal.SIGSTOP)

    def turn(self, limit_s: float) -> Measured:
        """Raises as ``wait_until_ready``."""
        self._signal(signal.SIGCONT)
        try:
            os.write(self._tells, TURN)
        except BrokenPipeError:
            raise HwprofError(self._why_dead()) from None
        said = self._next(limit_s, "took longer than it may")
        self._signal(signal.SIGSTOP)
        if not isinstance(said, Measured):
            raise HwprofError("it spoke out of turn")
        return said

    def end(self) -> None:
        """Kindly at first; may be called again."""
        if self._process.returncode is not None:
            return
        with suppress(BrokenPipeError):
            os.write(self._tells, END)
        os.close(self._tells)
        self._signal(signal.SIGCONT)
        try:
            self._process.wait(KILL_AFTER_S)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._process.wait()
        os.close(self._hears)

    def kill(self) -> None:
        """At once, with all that it started."""
        self._signal(signal.SIGKILL)
        self.end()

    def _signal(self, number: int) -> None:
        if self._process.returncode is None:
            with suppress(OSError):
                os.killpg(self.pid, number)

    def _next(self, limit_s: float, late: str) -> Said:
        deadline_s = time.monotonic() + limit_s
        readable = select.poll()  # select() knows no descriptor beyond 1023
        readable.register(self._hears, select.POLLIN)
        while b"\n" not in self._rest:
            if not readable.poll(LOOK_EVERY_MS):
                if self._process.poll() is not None:  # though a child of its own may hold the pipe
                    raise HwprofError(self._why_dead())
                if time.monotonic() > deadline_s:
                    raise HwprofError(f"{late} within {limit_s:.0f} s")
                continue
            data = os.read(self._hears, 1 << 16)
            self._rest += data
            if not data or len(self._rest) > LONGEST_LINE:
                self._process.wait()
                raise HwprofError(self._why_dead())
        line, _, self._rest = self._rest.partition(b"\n")
        try:
            said = decode(line)
        except msgspec.MsgspecError as error:
            raise HwprofError(f"it said what nobody understands: {error}") from error
        if isinstance(said, Refused):
            raise HwprofError(one_line(said.reason), said.remedy)
        return said

    def _why_dead(self) -> str:
        status = self._process.wait()
        try:
            lines = self._log.read_bytes()[-LAST_WORDS:].decode(errors="replace").strip().splitlines()
        except OSError:
            lines = []
        how = f"it ended with status {status}" if status >= 0 else f"it ended by signal {-status}"
        return one_line(f"{how}: {lines[-1]}") if lines else how
