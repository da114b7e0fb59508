"""How much memory polars keeps for itself: its allocator has four arenas a processor, each with what was freed in it,
and it has a thread a processor, each with its part of a table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

THREADS: Final = "POLARS_MAX_THREADS"
MOST_THREADS: Final = 4
"""On 2 processors a report of 3,000 layers took 13.0 s of processor time and 501 MB with 4 threads, 16.1 s and 526 MB
with 16."""

ALLOCATOR: Final = "_RJEM_MALLOC_CONF"
LITTLE: Final = "narenas:4,dirty_decay_ms:100,muzzy_decay_ms:0"
"""What was freed goes back after a tenth of a second: that report took 499 MB instead of 608, and 12.9 s instead of
11.0 (means of two). At once, it would be asked for again page by page: three times as many page faults."""

_own: Final[list[str]] = []
"""The variables that hwprof has set, and the user has not."""


def keep_little() -> None:
    """Before polars is imported; what the user has set stays, but no number of threads that makes polars panic."""
    threads = os.environ.get(THREADS, "1")
    if not threads.isdecimal() or not 0 < int(threads) < 1 << 31:
        del os.environ[THREADS]
    if THREADS not in os.environ and (os.cpu_count() or 1) > MOST_THREADS:
        os.environ[THREADS] = str(MOST_THREADS)
        _own.append(THREADS)
    os.environ.setdefault(ALLOCATOR, LITTLE)


def environment_of_models() -> dict[str, str]:
    """That of processes with a model, whose code may use polars too: with as many threads as without hwprof."""
    return {name: value for name, value in os.environ.items() if name not in _own}


def threads(environment: Mapping[str, str], processors: int) -> int:
    """Of the pool that polars makes itself with this environment."""
    return int(environment.get(THREADS, processors))
