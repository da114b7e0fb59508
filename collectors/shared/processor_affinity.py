"""Which processors the calling thread runs on."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager


@contextmanager
def on_processors(cpus: Collection[int]) -> Iterator[None]:
    """The block runs on one of these processors (none given: anywhere), as far as this thread may."""
    allowed = os.sched_getaffinity(0)
    wanted = allowed.intersection(cpus)
    if not wanted or wanted == allowed:
        yield
        return
    os.sched_setaffinity(0, wanted)
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
