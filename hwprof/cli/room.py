"""Whether there is room for the threads of the libraries that hwprof is made with: without it they end the process with
pages of their own, raise SIGINT, or never come to an end."""

from __future__ import annotations

import os
import threading
from typing import Final

from hwprof.errors import HwprofError

OF_LIBRARIES: Final = 12
"""Beside one a processor and pool: cleaners and helpers of polars, its allocator, and the processes of a tool."""

POOLS: Final = 2


def require_threads() -> None:
    """Starts as many as there may be, which takes a millisecond. Raises ``HwprofError`` where that is not possible."""
    needed = OF_LIBRARIES + POOLS * (os.cpu_count() or 1)
    go_on, started = threading.Event(), []
    try:
        for _ in range(needed):
            thread = threading.Thread(target=go_on.wait, daemon=True)
            thread.start()
            started.append(thread)
    except RuntimeError as error:
        few = f"only {len(started)} of the {needed} threads that are needed can be started here"
        raise HwprofError(few, "a higher limit of processes: ulimit -u, or the container's") from error
    finally:
        go_on.set()
        for thread in started:
            thread.join()
