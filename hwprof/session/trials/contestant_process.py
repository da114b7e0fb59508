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

from hwprof import polars_memory, processes
from hwprof.errors import HwprofError
from hwprof.printable import one_line
from hwprof.session import interruption
from hwprof.workload.contest import END, TURN, Entry, Measured, Ready, Refused, Said, decode

LONGEST_LINE: Final = 1 << 20
LOOK_EVERY_MS: Final = 100
KILL_AFTER_S: Final = 2.0
LAST_WORDS: Final = 4096
"""Bytes of what it printed, of which the last line is the reason where it gives none."""


class ContestantProcess:
    """Stopped (SIGSTOP) whenever it is not its turn: no thread of it that spins or collects garbage takes time from
    another's turn. What it started is not stopped, so that nothing is left that is."""

    def __init__(self, entry: Entry, folder: Path, name: str, environment: Mapping[str, str], weights: int) -> None:
        """``folder``: for its order and its log, under ``name``; ``weights``: a descriptor that all share. Raises
        ``OSError``."""
        self._log = folder / f"{name}.log"
        order = folder / f"{name}.json"
        entry.write(order)
        self._hears, says = os.pipe()
        hears, self._tells = os.pipe()
        self._rest = b""
        self._over = False
        self._began_s = time.monotonic()
        descriptors = (says, hears, weights)
        try:
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    processes.command(
                        "hwprof.workload.contestant", str(order), *map(str, descriptors), str(os.getpid())
                    ),
                    env={**polars_memory.environment_of_models(), **environment},
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
        """It has warmed up, and is stopped. ``limit_s``: since it was started, whoever was waited for before. Raises
        ``HwprofError`` where it gives up, dies, or takes longer."""
        if not isinstance(self._next(limit_s, "was not ready", self._began_s), Ready):
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
        """Kindly at first, and then whatever it started; may be called again."""
        if self._over:
            return
        started = processes.descendants(self.pid)
        with suppress(OSError):
            os.write(self._tells, END)
        self._signal(signal.SIGCONT)
        deadline_s = time.monotonic() + KILL_AFTER_S
        while not self._has_ended() and time.monotonic() < deadline_s:
            time.sleep(LOOK_EVERY_MS / 1000 / 5)
        self.kill()
        processes.kill(started)

    def kill(self) -> None:
        """At once, with all that it started; may be called again. As long as it is not waited for, its number, which is
        its group's too, is nobody else's."""
        if self._over:
            return
        self._over = True
        started = processes.descendants(self.pid)
        with suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        processes.kill(started)
        self._process.wait()
        for descriptor in (self._hears, self._tells):
            with suppress(OSError):
                os.close(descriptor)

    def _signal(self, number: int) -> None:
        if not self._over:
            with suppress(OSError):
                os.kill(self.pid, number)

    def _has_ended(self) -> bool:
        """Without taking note of it."""
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # where SIGCHLD is ignored, the kernel has taken note
            return True

    def _next(self, limit_s: float, late: str, began_s: float | None = None) -> Said:
        deadline_s = (time.monotonic() if began_s is None else began_s) + limit_s
        readable = select.poll()  # select() knows no descriptor beyond 1023
        readable.register(self._hears, select.POLLIN)
        while b"\n" not in self._rest:
            if not readable.poll(LOOK_EVERY_MS):
                if self._has_ended():  # though a child of its own may hold the pipe
                    raise HwprofError(self._why_dead())
                if time.monotonic() > deadline_s:
                    raise HwprofError(f"{late} within {limit_s:.0f} s")
                continue
            data = os.read(self._hears, 1 << 16)
            self._rest += data
            if not data or len(self._rest) > LONGEST_LINE:
                raise HwprofError(self._why_dead())
        line, _, self._rest = self._rest.partition(b"\n")
        try:
            said = decode(line)
        except msgspec.MsgspecError as error:
            raise HwprofError(f"it said what nobody understands: {error}") from error
        if isinstance(said, Refused):
            raise HwprofError(one_line(said.reason), said.remedy)
        if isinstance(said, Measured) and not said.plausible:
            raise HwprofError("it said what cannot be")
        return said

    def _why_dead(self) -> str:
        """It has ended, or will never be heard again."""
        deadline_s = time.monotonic() + KILL_AFTER_S
        while not self._has_ended():
            if time.monotonic() > deadline_s:
                return "it speaks no more, though it lives: the model's code closed what is not its own"
            time.sleep(LOOK_EVERY_MS / 1000 / 5)
        status = self._ended()
        lines = self._last_words()
        how = f"it ended with status {status}" if status >= 0 else f"it ended by {interruption.name_of(-status)}"
        return one_line(f"{how}: {lines[-1]}") if lines else how

    def _ended(self) -> int:
        """Its exit code, negative for a signal."""
        self.kill()
        return self._process.returncode

    def _last_words(self) -> list[str]:
        try:
            with self._log.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - LAST_WORDS))
                return log.read(LAST_WORDS).decode(errors="replace").strip().splitlines()
        except OSError:
            return []
