"""The worker of a pass as its supervisor has it: started, let go on, listened to, ended."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from hwprof import processes
from hwprof.session.messages import Inbox

KILL_AFTER_S: Final = 3.0


class WorkerProcess:
    """A fresh process for one pass. It imports what it needs, and waits for ``go_on``: so it can be started while the
    pass before is written, and comes to what is measured only in its turn."""

    def __init__(
        self,
        order_file: Path,
        log_file: Path,
        *,
        launcher: Sequence[str] = (),
        environment: Mapping[str, str],
        inherited: Sequence[int] = (),
    ) -> None:
        """``launcher``: what stands before its command. ``inherited``: descriptors that it gets. Raises ``OSError``."""
        said, tells = os.pipe()
        waits, self._lets_go = os.pipe()
        self._read_end: int | None = said
        self.inbox = Inbox(said)
        command = processes.command("hwprof.session.worker", str(order_file), str(tells), str(waits))
        try:
            with log_file.open("wb") as log:
                self._process = subprocess.Popen(
                    [*launcher, *command],
                    env=os.environ | environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    pass_fds=(tells, waits, *inherited),
                    start_new_session=True,  # Ctrl-C is the supervisor's to handle
                )
        except OSError:
            os.close(said)
            os.close(self._lets_go)
            raise
        finally:
            os.close(tells)
            os.close(waits)

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    def go_on(self) -> None:
        """It is its turn."""
        try:
            os.write(self._lets_go, b"\n")
        except BrokenPipeError:
            return  # it is gone, as whoever listens will find

    def interrupt(self) -> None:
        """Tells it to come to an end with what it has."""
        self._process.send_signal(signal.SIGINT)

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        return self._process.wait()

    def end(self) -> None:
        """Ends it and whatever it started, kindly at first; may be called again."""
        if self._read_end is not None:
            os.close(self._read_end)
            os.close(self._lets_go)
            self._read_end = None
        for how in (signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is not None:
                return
            try:
                os.killpg(self.pid, how)
            except ProcessLookupError:
                return
            deadline = time.monotonic() + KILL_AFTER_S
            while self._process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.02)
