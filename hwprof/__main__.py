"""``hwprof`` and ``python -m hwprof``."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

from hwprof import bytecode, polars_memory


def main() -> None:
    """Runs the command line and ends the process with its exit code."""
    bytecode.keep_whole()
    polars_memory.keep_little()
    try:
        from hwprof import interrupts

        interrupts.come_again()
        from hwprof.session import interruption

        with interruption.signals_interrupt() as came:
            status = _run()
            if came and not status:  # some library's code has swallowed what the signal raised
                raise interruption.EndedBySignal(came[0])
            _leave(status)
    except KeyboardInterrupt as interrupt:  # where nobody is who handles it: before the command, or behind its message
        with suppress(OSError):
            os.write(2, f"hwprof: {str(interrupt) or 'interrupted'}\n".encode())
        os._exit(128 + getattr(interrupt, "number", signal.SIGINT))


def _run() -> int:
    from hwprof import interrupts
    from hwprof.cli import streams

    interrupts.tell_apart()
    streams.prepare()
    from hwprof.cli.app import run

    status = run(sys.argv[1:])
    streams.settle()
    return status


def _leave(status: int) -> NoReturn:
    from hwprof import processes

    processes.leave(status)  # a thread of a collector's may never end


if __name__ == "__main__":
    main()
