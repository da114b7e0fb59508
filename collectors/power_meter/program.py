"""The user's program that prints watts: its lines, each with the moment at which it came."""

from __future__ import annotations

import os
import select
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from hwprof import processes
from hwprof.errors import HwprofError, UsageError

END_S: Final = 2.0
"""As long as it may take to end when it is told to; then it is killed."""

LONGEST_LINE: Final = 4096
MOST_LINES: Final = 1_000_000
"""Of a pass; what comes then is not kept."""

CHUNK: Final = 65536
MOST_CHUNKS: Final = 1000
"""That are read when it is gone; a pipe holds fewer."""


def words(command: str) -> list[str]:
    """The command's words, as a shell has them; no shell runs. Raises ``UsageError`` where it names no program."""
    try:
        found = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--power-command {command!r}: {error}") from None
    if not found:
        raise UsageError("--power-command names no program", "--power-command 'program arguments'")
    if shutil.which(found[0]) is None:
        raise UsageError(f"--power-command: there is no program {found[0]!r}", "its path, or a name on PATH")
    return found


class Program:
    """It, from ``begin`` to ``end``; nobody else's signals reach it, and nothing that it has started outlives it, nor
    the process that began it (see ``hwprof.keeper``)."""

    def __init__(self, command: list[str], clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self.command = command
        self._clock_ns = clock_ns
        self._process: subprocess.Popen[bytes] | None = None
        self._threads: list[threading.Thread] = []
        self._ended = threading.Event()
        self.lines: list[tuple[int, str]] = []
        self.cut = 0  # lines that were too long, or too many
        self.errors = b""  # the last that it wrote to standard error
        self.gone: int | None = None  # exit status, where it ended before it was told to

    def begin(self) -> None:
        """Starts it. Raises ``HwprofError``."""
        try:
            self._process = subprocess.Popen(
                processes.command("hwprof.keeper", str(os.getpid()), *self.command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise HwprofError(f"{self.command[0]} could not be started: {error.strerror}") from error
        assert self._process.stdout is not None and self._process.stderr is not None
        for stream, hear in ((self._process.stdout, self._lines()), (self._process.stderr, self._last_words())):
            arguments = (stream.fileno(), hear)
            self._threads.append(threading.Thread(target=self._hear, args=arguments, name="hwprof-meter", daemon=True))
            self._threads[-1].start()

    def end(self) -> None:
        """It is gone, whatever it does; what it has printed is in ``lines``."""
        process, self._process = self._process, None
        if process is None:
            return
        self.gone = process.poll()
        started = processes.descendants(process.pid)  # those in sessions of their own, too
        self._signal(process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_S)
        self._signal(process, signal.SIGKILL)  # its children too
        process.wait()
        processes.kill(started)
        self._ended.set()
        for thread in self._threads:
            thread.join()
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        process.stderr.close()

    @staticmethod
    def _signal(process: subprocess.Popen[bytes], number: int) -> None:
        with suppress(OSError):
            os.killpg(process.pid, number)

    def _hear(self, descriptor: int, hear: Callable[[bytes], None]) -> None:
        says = select.poll()  # select() knows no descriptor beyond 1023
        says.register(descriptor, select.POLLIN)
        left = MOST_CHUNKS
        while left:
            left -= self._ended.is_set()  # somebody else may have the stream, and go on
            if not says.poll(50):
                if self._ended.is_set():
                    return
                continue
            chunk = os.read(descriptor, CHUNK)
            if not chunk:
                return
            hear(chunk)

    def _lines(self) -> Callable[[bytes], None]:
        begun, skips = b"", False

        def hear(chunk: bytes) -> None:
            nonlocal begun, skips
            now_ns = self._clock_ns()
            *whole, begun = (begun + chunk).split(b"\n")
            for line in whole[skips:]:
                self._keep(now_ns, line)
            skips = skips and not whole  # what is left of a line that was too long is none of its own
            if len(begun) > LONGEST_LINE:
                self.cut += not skips
                begun, skips = b"", True
            elif skips:
                begun = b""

        return hear

    def _last_words(self) -> Callable[[bytes], None]:
        def hear(chunk: bytes) -> None:
            self.errors = (self.errors + chunk)[-LONGEST_LINE:]

        return hear

    def _keep(self, now_ns: int, line: bytes) -> None:
        if len(line) > LONGEST_LINE or len(self.lines) >= MOST_LINES:
            self.cut += 1
            return
        self.lines.append((now_ns, line.decode(errors="replace")))
