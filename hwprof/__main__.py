"""``hwprof`` and ``python -m hwprof``."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress


def main() -> None:
    """Runs the command line and ends the process with its exit code."""
    try:
        from hwprof.session import interruption

        with interruption.signals_interrupt() as came:
            _run(came)
    except KeyboardInterrupt as interrupt:  # where nobody is who handles it: before the command, or behind its message
        with suppress(OSError):
            os.write(2, f"hwprof: {interrupt or 'interrupted'}\n".encode())
        os._exit(128 + getattr(interrupt, "number", signal.SIGINT))


def _run(came: Sequence[int]) -> None:
    from hwprof import interrupts, processes
    from hwprof.cli import streams
    from hwprof.session import interruption

    interrupts.tell_apart()
    streams.prepare()
    from hwprof.cli.app import run

    status = run(sys.argv[1:])
    streams.settle()
    if came and not status:
        raise interruption.EndedBySignal(came[0])
    processes.leave(status)  # a thread of a collector's may never end


if __name__ == "__main__":
    main()
