"""Programs that are run to their end: for a bounded time, with bounded output, and no child outlives them.

``subprocess.run`` keeps all that a program prints, however much, leaves its children running, and takes one that has
ended for one that hangs where a child has its output open.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from hwprof.printable import one_line

MOST_BYTES: Final = 1 << 20
"""Of each stream, that are kept; what comes then is read, and gone."""

LOOK_EVERY_MS: Final = 20
CHUNK: Final = 1 << 16


class ProgramError(Exception):
    """It could not be started, or did not end in time: why, in one printable line."""


class Ended(NamedTuple):
    """How it ended, and what it printed."""

    status: int  # its exit code, negative for a signal
    output: bytes
    errors: bytes

    def reason(self) -> str:
        """Why it failed: the first line of what it complained of, else how it ended; printable."""
        lines = [line for line in self.errors.decode(errors="replace").splitlines() if line.strip()]
        if lines:
            return one_line(lines[0])
        return f"exit status {self.status}" if self.status >= 0 else f"ended by signal {-self.status}"


def run(
    command: Sequence[str],
    *,
    limit_s: float,
    given: bytes = b"",
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Ended:
    """Runs it in ``folder`` (None: the current one) with ``given`` on its standard input. ``environment``: all of it;
    None: this process's. Raises ``ProgramError``."""
    with tempfile.TemporaryFile() as source:  # a pipe would fill up where it does not read
        source.write(given)
        source.seek(0)
        try:
            process = subprocess.Popen(
                command,
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                cwd=folder,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            raise ProgramError(one_line(f"{command[0]} does not start: {reason or error}")) from error
    with process:
        try:
            output, errors = _read(process, time.monotonic() + limit_s)
        except TimeoutError:
            raise ProgramError(one_line(f"{command[0]} did not end within {limit_s:g} s")) from None
        finally:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)  # its number is its own until it is waited for
            status = process.wait()
    return Ended(status, output, errors)


def _read(process: subprocess.Popen[bytes], deadline_s: float) -> tuple[bytes, bytes]:
    """Until it has ended, though a child of its own may hold its streams. Raises ``TimeoutError``."""
    assert process.stdout is not None and process.stderr is not None
    kept = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    open_ones = select.poll()  # select() knows no descriptor beyond 1023
    for descriptor in kept:
        open_ones.register(descriptor, select.POLLIN)
    left = len(kept)
    while True:
        ended = _has_ended(process.pid)
        ready = open_ones.poll(0 if ended else LOOK_EVERY_MS if left else 1)
        for descriptor, _ in ready:
            chunk = os.read(descriptor, CHUNK)
            kept[descriptor] += chunk[: MOST_BYTES - len(kept[descriptor])]
            if not chunk:
                open_ones.unregister(descriptor)
                left -= 1
        if ended and (not ready or all(len(one) >= MOST_BYTES for one in kept.values())):
            return bytes(kept[process.stdout.fileno()]), bytes(kept[process.stderr.fileno()])
        if time.monotonic() > deadline_s:
            raise TimeoutError


def _has_ended(pid: int) -> bool:
    """Without taking note of it."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # where SIGCHLD is ignored, the kernel has taken note
        return True
