"""Whether there is room for the libraries that hwprof is made with, their threads and their files: without it they end
the process with pages of their own, raise SIGINT, or never come to an end."""

from __future__ import annotations

import os
import resource
import threading
from typing import Final

from hwprof.errors import HwprofError

OF_LIBRARIES: Final = 12
"""Beside one a processor and pool: cleaners and helpers of polars, its allocator, and the processes of a tool."""

POOLS: Final = 2


ADDRESS_SPACE_BYTES: Final = 2 << 30
"""With less some library cannot be loaded, or its threads not be started. Little of it is memory."""

DESCRIPTORS: Final = 8
"""That polars reads tables with; with six more it does, with fewer it panics where it makes its runtime, and from then
on wherever it is asked for anything."""


def require_room() -> None:
    """Starts as many threads as there may be, and opens as many descriptors, which takes a millisecond. Raises
    ``HwprofError`` where that is not possible, and where the address space is limited to less than is needed."""
    space_bytes, _ = resource.getrlimit(resource.RLIMIT_AS)
    if space_bytes != resource.RLIM_INFINITY and space_bytes < ADDRESS_SPACE_BYTES:
        few = f"{space_bytes >> 20} MiB of address space are allowed here, and {ADDRESS_SPACE_BYTES >> 20} MiB needed"
        raise HwprofError(few, "ulimit -v unlimited; a container's limit is one of memory")
    _require_descriptors()
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


def _require_descriptors() -> None:
    opened: list[int] = []
    try:
        while len(opened) < DESCRIPTORS:
            opened.append(os.eventfd(0))
    except OSError as error:
        few = f"only {len(opened)} of the {DESCRIPTORS} more file descriptors that are needed can be opened here"
        raise HwprofError(few, "a higher limit of open files: ulimit -n") from error
    finally:
        for descriptor in opened:
            os.close(descriptor)
