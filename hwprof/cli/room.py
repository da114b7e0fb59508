"""Whether there is room for the libraries that hwprof is made with, their threads and their files: without it they end
the process with pages of their own, raise SIGINT, or never come to an end."""

from __future__ import annotations

import os
import resource
import threading
from typing import Final

from hwprof import polars_memory
from hwprof.errors import MORE_PROCESSES, HwprofError

OF_LIBRARIES: Final = 12
"""Beside one a processor and pool: cleaners and helpers of polars, its allocator, and the processes of a tool."""

POOLS: Final = 2

OF_COLLECT: Final = 42
"""Threads of all that ``collect`` has at once, beside those of pools: the supervisor, the fork server, its copy that
adds up the trace pass, which has most, and the process that waits to write the report's files."""

OF_POLARS: Final = 3
"""Pools of polars in each process that reads a table: its own, that of its files, that of its queries."""

OF_TORCH: Final = 2
"""Pools of torch in the copy. Measured as the most threads at a time (/proc/PID/status), default passes, 2 processors:
57; with 1 and 8 --threads 55 and 69; with 4 and 16 POLARS_MAX_THREADS 68 and 142."""

STACK_BYTES: Final = 256 << 10
"""Of the threads here, which only wait: those of 8 MiB could fill an address space that is limited."""

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
    _require_threads(OF_LIBRARIES + POOLS * (os.cpu_count() or 1))


def require_room_to_measure(threads: int | None) -> None:
    """The same for what ``collect`` has at once: several processes, each with its libraries' threads. Not for ``try``,
    whose processes read no tables: one remedy can be tried with a limit of 19 processes, on 2 processors.
    ``threads``: of torch; None: its own choice, at most one a processor."""
    processors = len(os.sched_getaffinity(0))
    ours, models = (polars_memory.threads(of, processors) for of in (os.environ, polars_memory.environment_of_models()))
    _require_threads(OF_COLLECT + OF_POLARS * (ours + models) + OF_TORCH * (threads or processors))


def _require_threads(needed: int) -> None:
    go_on, started = threading.Event(), []
    usual_bytes = threading.stack_size(STACK_BYTES)
    try:
        for _ in range(needed):
            thread = threading.Thread(target=go_on.wait, daemon=True)
            thread.start()
            started.append(thread)
    except RuntimeError as error:
        few = f"only {len(started)} of the {needed} threads that are needed can be started here"
        raise HwprofError(few, MORE_PROCESSES) from error
    finally:
        threading.stack_size(usual_bytes)
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
