"""The worker of a pass as its supervisor has it: started, let go on, listened to, ended."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from hwprof import processes
from hwprof.session.messages import Inbox

KILL_AFTER_S: Final = 3.0
KILL_OTHERS_AFTER_S: Final = 0.5
LOOK_EVERY_S: Final = 0.02


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
        self.inbox = Inbox(said, self._has_ended)
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
        if not self._has_ended():
            os.kill(self.pid, signal.SIGINT)

    def wait(self) -> int:
        """Its exit code, once it has ended, and all that it started with it."""
        if not self._has_ended():
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        if self._process.returncode is None:
            self._end_others()
        return self._process.wait()

    def end(self) -> None:
        """Ends it and whatever it started, kindly at first; may be called again."""
        if self._read_end is not None:
            os.close(self._read_end)
            os.close(self._lets_go)
            self._read_end = None
        if self._process.returncode is not None:
            return
        for how in (signal.SIGTERM, signal.SIGKILL):
            if self._has_ended():
                break
            os.killpg(self.pid, how)
            _wait_until(self._has_ended, KILL_AFTER_S)
        if self._has_ended():
            self.wait()

    def _has_ended(self) -> bool:
        """Without taking note of it: as long as nobody does, no other process gets its number, nor its group's."""
        if self._process.returncode is not None:
            return True
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # where SIGCHLD is ignored, the kernel has taken note
            return True

    def _end_others(self) -> None:
        """Ends those of its group that live on, kindly at first, when it has ended itself."""
        with suppress(OSError):
            os.killpg(self.pid, signal.SIGTERM)
        self._process.wait()
        if not _wait_until(self._has_no_group, KILL_OTHERS_AFTER_S):
            with suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)

    def _has_no_group(self) -> bool:
        try:
            os.killpg(self.pid, 0)
        except OSError:  # nobody is left, or nobody whom we may end
            return True
        return False


def _wait_until(happened: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_EVERY_S)
    return True
