"""``hwprof`` and ``python -m hwprof``."""

from __future__ import annotations

import os
import sys
from contextlib import suppress


def main() -> None:
    """Runs the command line and ends the process with its exit code."""
    try:
        from hwprof import interrupts, processes
        from hwprof.cli import streams
        from hwprof.cli.app import run

        interrupts.tell_apart()
        streams.prepare()
    except KeyboardInterrupt:  # before anybody is there who handles it
        with suppress(OSError):
            os.write(2, b"hwprof: interrupted\n")
        os._exit(130)
    status = run(sys.argv[1:])
    streams.settle()
    processes.leave(status)  # a thread of a collector's may never end


if __name__ == "__main__":
    main()
