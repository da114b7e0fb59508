"""Workers without the wait for torch: a process that has imported it forks for every pass.

Importing takes each worker two seconds of processor time; so one process imports, while the passes are still planned,
and the workers are its copies. Nothing of the workload has run in it: it has no thread of its own (those that a BLAS
library starts end before the fork), no model and no kernel, so its copy is as fresh as a new interpreter after the same
imports; only the pages of libraries that nothing but the import has touched are not resident in it.

``python -m hwprof.session.fork_server SOCKET PARENT MODEL`` is that process. ``multiprocessing.forkserver`` would bring
the command's own modules into what is measured, and reap workers before anybody has ended what they left running.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from hwprof import polars_memory, processes
from hwprof.session.messages import LOOK_UP_S

READ_LATE: Final = "ONEDNN_"
"""How the variables begin that their library reads when it is first used: a fork can still be given these. Others may
have been read when torch was imported."""

_MOST_BYTES: Final = 1 << 16
_MOST_DESCRIPTORS: Final = 8


class Fork(msgspec.Struct, tag="fork"):
    """One more worker. With it come the descriptors of its log, and those that its order names by position."""

    order_file: str
    environment: dict[str, str]


class Reap(msgspec.Struct, tag="reap"):
    """Take note of the end of a worker: from now on another process may have its number."""

    pid: int


class Answer(msgspec.Struct):
    """The number of the new worker, the exit code of the old one, or why there is none."""

    value: int = 0
    errno: int = 0


_decode: Final = msgspec.json.Decoder(Fork | Reap).decode


class ForkServer:
    """The process as the supervisor has it; a context, which it does not survive. Where it cannot be had (an old
    kernel, torch that crashes, somebody has stopped it), ``fork`` has no answer and fresh processes do: slower, and
    with their own messages."""

    def __init__(self, model: str) -> None:
        """``model``: whose libraries are imported, see ``WorkloadSpec``."""
        self._socket: socket.socket | None = None
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            os.close(os.pidfd_open(os.getpid()))
            self._process = subprocess.Popen(
                processes.command("hwprof.session.fork_server", str(theirs.fileno()), str(os.getpid()), model),
                env=polars_memory.environment_of_models(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C is the supervisor's to handle
            )
            self._socket = mine
        except (OSError, AttributeError):  # no pidfd_open: in this kernel, or this Python's C library
            mine.close()
        finally:
            theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.end()

    def end(self) -> None:
        """No worker follows: what it has imported takes 200 MB."""
        if self._socket is not None:
            self._leave()

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def gone(self) -> bool:
        """Whether it was never there, or has ended, as far as is known, and all that it had forked with it."""
        return self._socket is None

    def fork(
        self, order_file: Path, log: int, descriptors: Sequence[int], environment: Mapping[str, str]
    ) -> ForkedProcess | None:
        """A worker for this order, which gets these descriptors in this order; None where a fresh process has to do."""
        if not all(name.startswith(READ_LATE) for name in environment):
            return None
        answer = self._ask(Fork(str(order_file), dict(environment)), (log, *descriptors))
        if answer is None:
            return None
        if answer.errno:
            raise OSError(answer.errno, os.strerror(answer.errno))
        return ForkedProcess(answer.value, self)

    def reap(self, pid: int) -> int:
        """The exit code of a worker that has ended, negative for a signal."""
        answer = self._ask(Reap(pid))
        return -signal.SIGKILL if answer is None else answer.value  # it ends with the server

    def _ask(self, what: Fork | Reap, descriptors: Sequence[int] = ()) -> Answer | None:
        """None where the server is gone."""
        if self._socket is None:
            return None
        try:
            socket.send_fds(self._socket, [msgspec.json.encode(what)], descriptors)
            said = self._socket.recv(_MOST_BYTES) if self._speaks(self._socket) else b""
        except OSError:
            said = b""
        except BaseException:  # Ctrl-C: its answer would be taken for another's
            self._leave()
            raise
        if not said:
            self._leave()
            return None
        return msgspec.json.decode(said, type=Answer)

    def _speaks(self, link: socket.socket) -> bool:
        """Waits until it does, which may be the end; not for one that is stopped."""
        while not select.select([link], [], [], LOOK_UP_S)[0]:  # restarted by no library, as a read may be
            if processes.is_stopped(self.pid):
                return False
        return True

    def _leave(self) -> None:
        assert self._socket is not None
        self._socket.close()
        self._socket = None
        self._process.kill()
        self._process.wait()


class ForkedProcess:
    """A worker that the server has forked."""

    def __init__(self, pid: int, server: ForkServer) -> None:
        self.pid = pid
        self._server = server
        self._returncode: int | None = None
        self._pidfd = os.pidfd_open(pid)  # the server takes no note of its end before it is told to

    @property
    def orphaned(self) -> bool:
        """Whether its server is gone, and it ended with that."""
        return self._server.gone

    def has_ended(self) -> bool:
        """Without taking note of it."""
        return self._returncode is not None or bool(select.select([self._pidfd], [], [], 0)[0])

    def reap(self) -> int:
        """Waits for its end; the exit code, negative for a signal."""
        if self._returncode is None:
            select.select([self._pidfd], [], [])
            self._returncode = self._server.reap(self.pid)
            os.close(self._pidfd)
        return self._returncode


def main(arguments: Sequence[str]) -> int:
    """Imports, then forks whenever it is told to, as long as the process of that number is there."""
    parent = int(arguments[1])
    processes.end_with_parent(parent)
    processes.keep_orphans()
    workers: set[int] = set()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # whoever starts hwprof may ignore it: no exit code would be kept
    with suppress(BaseException):  # the worker comes across the same, and says so
        from hwprof.workload import factory  # here, for the supervisor shall not have torch

        factory.preload(arguments[2])
    gc.collect()
    gc.freeze()  # a collection in a copy would write to, and so copy, every page of objects
    gone = processes.wake_when_gone(parent)
    ready = select.poll()  # select() knows no descriptor beyond 1023
    with socket.socket(fileno=int(arguments[0])) as server:
        for descriptor in (server.fileno(), gone):
            ready.register(descriptor, select.POLLIN)
        while True:
            data, descriptors = b"", list[int]()
            if gone not in dict(ready.poll()):
                data, descriptors, _, _ = socket.recv_fds(server, _MOST_BYTES, _MOST_DESCRIPTORS)
            if not data:
                processes.end_descendants()  # the workers would end with this process, what they started would not
                return 0
            what = _decode(data)
            if isinstance(what, Reap):
                status = os.waitstatus_to_exitcode(os.waitpid(what.pid, 0)[1])
                workers.discard(what.pid)
                processes.end_descendants(but=workers)  # what the model's code left, where the worker could not end it
                server.send(msgspec.json.encode(Answer(status)))
            elif (answer := _forked(descriptors)) is not None:
                workers.add(answer.value)
                server.send(msgspec.json.encode(answer))
            else:
                break
    os.close(gone)
    return _work(what, descriptors)


def _forked(descriptors: Sequence[int]) -> Answer | None:
    """None in the copy."""
    server = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        answer = Answer(errno=error.errno or 0)
    else:
        with suppress(OSError):  # whoever of the two comes first: its supervisor may want to end the group at once
            os.setpgid(pid, pid)
        if not pid:
            processes.end_with_parent(server)  # before the worker's code is imported: it may be gone by then
            return None
        answer = Answer(pid)
    for descriptor in descriptors:
        os.close(descriptor)
    return answer


def _work(order: Fork, descriptors: Sequence[int]) -> int:
    """Is the worker."""
    from hwprof.session import worker

    log, *others = descriptors
    for standard in (1, 2):
        os.dup2(log, standard)
    os.close(log)
    os.environ.update(order.environment)
    main_thread: Any = threading.main_thread()
    main_thread._set_native_id()  # Python up to 3.12 leaves it the server's: spans would have a thread of no process
    return worker.main([order.order_file, *map(str, others)])


if __name__ == "__main__":
    status = 1
    try:
        status = main(sys.argv[1:])
    finally:
        processes.leave(status)  # whatever happens: a thread of a library's would keep it, and who waits for an answer
