"""How much data lies in which level of the memory hierarchy, by the sizes of the caches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from hwprof.run.manifest import Cache
from hwprof.run.peaks import DRAM

FILL: Final = 0.5
"""Of the first cache; of others the geometric mean of their size and that of the level above: as far as can be from
what the one above holds, and from where others (programs, virtual machines) take a part of this one."""

CHASED: Final = 2.0
"""Times the level above: in a circle of lines each has left that one when it comes again. A larger circle takes so long
that others on the machine have had its lines out of a cache that they share."""

ABOVE: Final = 1.5
"""Times the level above, at least: of a smaller working set too much lies there."""

STREAM: Final = 4
"""STREAM's rule: each array has at least so many times the bytes of all caches together."""

LEAST_DRAM_BYTES: Final = 64 << 20
"""Of an array, where nobody says how large the caches are."""

LEAST_STREAM: Final = 2
"""Where memory does not suffice for that (480 MiB of cache: 6 GB): all arrays together still have six times the bytes,
so that a round finds little of the one before."""

SHARE_OF_MEMORY: Final = 0.25
"""Of what is free: more is not taken."""

UNIT_BYTES: Final = 4096
"""Working sets are multiples of it, for each of three arrays."""


class WorkingSet(NamedTuple):
    """Of one thread, in all of its arrays together."""

    level: str
    bytes: int


def working_sets(caches: Sequence[Cache], threads: int, free_bytes: int) -> list[WorkingSet]:
    """One a level for each of so many threads that run at a time, L1 first, DRAM last. A level that has no room of its
    own below the level above (as seen by one thread) is left out; DRAM where memory does not suffice."""
    found: list[WorkingSet] = []
    above = 0.0
    for cache in sorted((one for one in caches if one.kind != "instruction"), key=lambda one: one.level):
        share = cache.size_bytes / min(cache.shared_by, threads)
        wanted = _whole(math.sqrt(above * share) if above else FILL * share)
        if wanted >= ABOVE * above:
            found.append(WorkingSet(f"L{cache.level}", wanted))
        above = max(above, share)
    streamed = streamed_bytes(caches, threads, free_bytes)
    if streamed is not None:
        found.append(WorkingSet(DRAM, streamed))
    return found


def streamed_bytes(caches: Sequence[Cache], threads: int, free_bytes: int) -> int | None:
    """Of one of the threads, in three arrays that the caches do not hold; None where memory does not suffice."""
    sizes = (dram_bytes(caches, threads, arrays=3, times=times) for times in (STREAM, LEAST_STREAM))
    return next((size for size in sizes if size * threads <= SHARE_OF_MEMORY * free_bytes), None)


def chased(caches: Sequence[Cache]) -> list[WorkingSet]:
    """One a level of cache for a chase of pointers by one thread, L1 first."""
    found: list[WorkingSet] = []
    above = 0
    for cache in sorted((one for one in caches if one.kind != "instruction"), key=lambda one: one.level):
        wanted = _whole(CHASED * above if above else FILL * cache.size_bytes)
        if wanted <= 0.75 * cache.size_bytes:
            found.append(WorkingSet(f"L{cache.level}", wanted))
        above = max(above, cache.size_bytes)
    return found


def dram_bytes(caches: Sequence[Cache], threads: int, *, arrays: int, times: int = STREAM) -> int:
    """Of one of the threads, for so many arrays that all of them together make, each of so many times the caches."""
    largest = max((one.size_bytes for one in caches), default=0)
    return _whole(arrays * max(times * largest, LEAST_DRAM_BYTES) / threads)


def _whole(size: float) -> int:
    return max(1, int(size) // (3 * UNIT_BYTES)) * 3 * UNIT_BYTES
