"""valgrind's command line: which caches it is to simulate, and where it writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hwprof.run.manifest import Cache

PROFILE: Final = "callgrind.out"
"""KCachegrind looks for files of this name."""
LOG: Final = "valgrind.log"


def command(valgrind: str, raw: Path, caches: Sequence[Cache], *, cache_sim: bool, waits: bool) -> list[str]:
    """What stands before the program. ``waits``: it asks for instrumentation itself; else that begins at once."""
    return [
        valgrind,
        "--tool=callgrind",
        f"--log-file={_literal(raw / LOG)}",
        f"--callgrind-out-file={_literal(raw / PROFILE)}",
        "--combine-dumps=yes",
        f"--instr-atstart={'no' if waits else 'yes'}",
        "--collect-atstart=no",
        *(["--cache-sim=yes", *cache_options(caches)] if cache_sim else []),
    ]


def _literal(path: Path) -> str:
    return str(path).replace("%", "%%")


def cache_options(caches: Sequence[Cache]) -> list[str]:
    """The caches to simulate: both L1 and the last level. What is not known of one is left to valgrind's own guess."""
    levels = {
        "I1": [cache for cache in caches if cache.level == 1 and cache.kind != "data"],
        "D1": [cache for cache in caches if cache.level == 1 and cache.kind != "instruction"],
        "LL": sorted((cache for cache in caches if cache.level > 1), key=lambda cache: -cache.level),
    }
    return [
        f"--{name}={','.join(map(str, geometry))}"
        for name, found in levels.items()
        if found and (geometry := simulated(found[0])) is not None
    ]


def simulated(cache: Cache) -> tuple[int, int, int] | None:
    """Size, ways and line of the nearest cache that valgrind can simulate, in bytes: its sets are a power of two.

    A cache with another number of sets (12 slices, say) gets the next lower power, and as many ways as come nearest to
    its size without exceeding it.
    """
    if not cache.ways or not cache.line_bytes:
        return None
    lines = cache.size_bytes // cache.line_bytes
    sets = lines // cache.ways
    if sets < 1:
        return None
    sets = 1 << (sets.bit_length() - 1)
    ways = lines // sets
    return sets * ways * cache.line_bytes, ways, cache.line_bytes
