"""The worker of a pass as its supervisor has it: started, let go on, listened to, ended."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from hwprof import polars_memory, processes
from hwprof.session.bounded_log import BoundedLog
from hwprof.session.fork_server import ForkServer
from hwprof.session.messages import ENOUGH, GO_ON, Inbox

KILL_AFTER_S: Final = 3.0
KILL_OTHERS_AFTER_S: Final = 0.5
LOOK_EVERY_S: Final = 0.02


class Child(Protocol):
    """A process in a session of its own, of which nobody takes note when it ends: as long as that is so, no other
    process gets its number, nor its group's."""

    pid: int

    @property
    def orphaned(self) -> bool:
        """Whether it ended because the process that it was a copy of is gone."""
        ...

    def has_ended(self) -> bool:
        """Without taking note of it."""
        ...

    def reap(self) -> int:
        """Waits for its end and takes note of it; the exit code, negative for a signal. May be called again."""
        ...


class FreshProcess:
    """A worker in an interpreter of its own."""

    orphaned = False

    def __init__(
        self,
        launcher: Sequence[str],
        order_file: Path,
        log: int,
        descriptors: Sequence[int],
        environment: Mapping[str, str],
    ) -> None:
        """``launcher``: what stands before its command. Raises ``OSError``."""
        command = processes.command("hwprof.session.worker", str(order_file), *map(str, descriptors))
        self._process = subprocess.Popen(
            [*launcher, *command],
            env={**polars_memory.environment_of_models(), **environment},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=tuple(descriptors),
            start_new_session=True,  # Ctrl-C is the supervisor's to handle
            preexec_fn=processes.ending_with_parent(),
        )
        self.pid = self._process.pid

    def has_ended(self) -> bool:
        """Without taking note of it."""
        if self._process.returncode is not None:
            return True
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # where SIGCHLD is ignored, the kernel has taken note
            return True

    def reap(self) -> int:
        """Waits for its end; the exit code, negative for a signal."""
        return self._process.wait()


class WorkerProcess:
    """The process of one pass. It builds the workload, and comes to what is measured only when it is told to ``go_on``:
    so it can be started while the pass before is written, and those who watch it from outside be there in time."""

    def __init__(
        self,
        order_file: Path,
        log_file: Path,
        *,
        server: ForkServer | None = None,
        launcher: Sequence[str] = (),
        environment: Mapping[str, str],
        weights: int | None = None,
    ) -> None:
        """Forked by the ``server`` where that can be: nothing stands before its command. ``weights``: a descriptor that
        it gets. Raises ``OSError``."""
        said, tells = os.pipe()
        waits, lets_go = os.pipe()
        self._read_end: int | None = said
        self._lets_go: int | None = lets_go
        self._status: int | None = None
        descriptors = (tells, waits) if weights is None else (tells, waits, weights)
        try:
            self.log = BoundedLog(log_file)
            try:
                log, forked = self.log.fileno(), None
                if server is not None and not launcher:
                    forked = server.fork(order_file, log, descriptors, environment)
                self._child: Child = forked or FreshProcess(launcher, order_file, log, descriptors, environment)
            except BaseException:
                self.log.close()
                raise
        except BaseException:
            os.close(said)
            os.close(lets_go)
            raise
        finally:
            os.close(tells)
            os.close(waits)
        self.inbox = Inbox(said, self._child.has_ended)
        self.log.start()

    @property
    def pid(self) -> int:
        """Its number."""
        return self._child.pid

    @property
    def orphaned(self) -> bool:
        """Whether it ended because the process that it was a copy of is gone."""
        return self._child.orphaned

    def go_on(self) -> None:
        """It is its turn."""
        self._tell(GO_ON)

    def has_ended(self) -> bool:
        """Whether it is over, well or not."""
        return self._status is not None or self._child.has_ended()

    def interrupt(self) -> None:
        """Tells it to come to an end with what it has, by a signal and by a byte: the signal is heard at once, unless
        the model's code keeps it from being heard."""
        if not self._child.has_ended():
            self.hurry()
            os.kill(self.pid, signal.SIGINT)

    def hurry(self) -> None:
        """Tells it, by the byte alone, that nobody wants to wait for what can be left out. A signal's handler may."""
        self._tell(ENOUGH)

    def _tell(self, byte: bytes) -> None:
        if self._lets_go is not None:
            with suppress(BrokenPipeError):  # it is gone, as whoever listens will find
                os.write(self._lets_go, byte)

    def wait_for_end(self) -> None:
        """Without taking note of it: its number stays its own."""
        _wait_until(self.has_ended)

    def wait(self) -> int:
        """Its exit code, once it has ended, and all that it started with it."""
        if self._status is None:
            _wait_until(self._child.has_ended)
            with suppress(OSError):
                os.killpg(self.pid, signal.SIGTERM)  # what it started, and lives on: kindly at first
            self._status = self._child.reap()
            if not _wait_until(self._has_no_group, KILL_OTHERS_AFTER_S):
                with suppress(OSError):
                    os.killpg(self.pid, signal.SIGKILL)
        return self._status

    def end(self) -> None:
        """Ends it and whatever it started, kindly at first, and closes its log; may be called again."""
        try:
            self._end()
        finally:
            self.log.close()

    def _end(self) -> None:
        if self._read_end is not None:
            lets_go, self._lets_go = self._lets_go, None  # first: see ``hurry``
            os.close(self._read_end)
            if lets_go is not None:
                os.close(lets_go)
            self._read_end = None
        if self._status is not None:
            return
        started = processes.descendants(self.pid)  # those in sessions of their own, too
        for how in (signal.SIGTERM, signal.SIGKILL):
            if self._child.has_ended():
                break
            for number in (how, signal.SIGCONT):  # one that is stopped would not hear it
                with suppress(OSError):
                    os.killpg(self.pid, number)
            _wait_until(self._child.has_ended, KILL_AFTER_S)
        if self._child.has_ended():
            self.wait()
        processes.kill(started)

    def _has_no_group(self) -> bool:
        try:
            os.killpg(self.pid, 0)
        except OSError:  # nobody is left, or nobody whom we may end
            return True
        return False


def _wait_until(happened: Callable[[], bool], seconds: float = math.inf) -> bool:
    deadline = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_EVERY_S)
    return True
