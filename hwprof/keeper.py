"""A process that stands between hwprof and one in which somebody else's code runs. What that one has started ends with
it, and with hwprof, however these end: also what is in a session of its own, or was left behind.

``python -m hwprof.keeper PARENT PROGRAM ARGUMENT…`` keeps a program for the process of that number.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Final, NoReturn

from hwprof import processes

NOT_STARTED: Final = 127
"""The exit code where there is no such program, as a shell has it."""


def begin(parent: int) -> int:
    """This process is a keeper from now on; what ``keep`` needs to know when that parent is gone. Raises ``OSError``
    where it is gone already."""
    processes.keep_orphans()
    return processes.wake_when_gone(parent)


def keep(child: int, gone: int) -> NoReturn:
    """Waits until that child has ended, ends what it has left, and ends as it did."""
    ends = select.poll()
    ended = os.pidfd_open(child)
    for descriptor in (ended, gone):
        ends.register(descriptor, select.POLLIN)
    if ended not in dict(ends.poll()):
        processes.end_descendants()
        os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    processes.end_descendants()
    _end_like(status)


def _end_like(status: int) -> NoReturn:
    if status < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the core is the other one's
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status if status >= 0 else 128 - status)


def main(arguments: Sequence[str]) -> NoReturn:
    """Starts the program, and keeps it."""
    parent, *command = arguments
    gone = begin(int(parent))
    signal.signal(signal.SIGTERM, _heed_no_more)  # the group gets it: the program shall end by it, and this one behind
    try:
        child = subprocess.Popen(command)
    except OSError as error:
        sys.stderr.write(f"could not be started: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(NOT_STARTED)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)  # whoever reads what the program prints comes to an end of it
    keep(child.pid, gone)


def _heed_no_more(_: int, __: FrameType | None) -> None:
    pass


if __name__ == "__main__":
    main(sys.argv[1:])
