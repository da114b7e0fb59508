"""How much memory polars keeps for itself: its allocator has four arenas a processor, each with what was freed in it,
and its threads, one a processor, hold a part of a table each. On a machine of many processors that is gigabytes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

THREADS: Final = "POLARS_MAX_THREADS"
MOST_THREADS: Final = 4
"""What hwprof does with tables is short: more threads hardly make it quicker."""

ALLOCATOR: Final = "_RJEM_MALLOC_CONF"
LITTLE: Final = "narenas:4,dirty_decay_ms:100,muzzy_decay_ms:0"
"""What was freed goes back after a tenth of a second: at once, it would be asked for again page by page (measured: a
report of 3,000 layers takes a fifth less memory, at once a third more processor time)."""


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


_own: Final[list[str]] = []
