"""The memory that Python shares with the cache model: the structures of ``native/cache.h``, and numpy's views."""

from __future__ import annotations

import ctypes
from typing import Final

import numpy as np
import numpy.typing as npt

from collectors.instrumented.arena import reserve
from collectors.instrumented.cache_geometry import LEVELS, Geometry
from collectors.instrumented.memory import MAX_CONTEXTS, MAX_EDGES

LOG_ENTRIES: Final = 16_777_216
LOCK_WORDS: Final = 8
LOCKS: Final = 64

COUNTS: Final = ("accesses", "bytes", "untraced", *(f"{level}_misses" for level in LEVELS))
"""What is counted of a block."""

ENTRY: Final = np.dtype([("context", np.uint32), ("block", np.uint32), ("counts", np.uint64, (len(COUNTS),))])

Entries = npt.NDArray[np.void]


class CacheLevel(ctypes.Structure):
    """A set-associative cache."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("sets", "ways", "mask", "lines")]


class CacheThread(ctypes.Structure):
    """An instrumented thread with its caches."""

    ring: int
    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("ring", "head", "tail", "operands", "records", "blocks", "touched")),
        *((name, ctypes.c_uint64) for name in ("operands_used", "records_used", "touched_used")),
        ("lock", ctypes.c_uint64 * LOCK_WORDS),
        ("levels", CacheLevel * len(LEVELS)),
    ]


class CacheModel(ctypes.Structure):
    """Everything that the C module and the simulator keep."""

    on: int
    consume: int
    log: int
    log_ends: int
    log_used: int
    log_overflowed: int
    lost: int
    lost_threads: int
    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("on", "levels", "line_shift")),
        ("sets", ctypes.c_uint64 * len(LEVELS)),
        ("ways", ctypes.c_uint64 * len(LEVELS)),
        *(
            (name, ctypes.c_uint64)
            for name in (
                "sharing",
                "consume",
                "acquire",
                "release",
                "log",
                "log_ends",
                "log_used",
                "log_overflowed",
                "lost",
                "lost_threads",
            )
        ),
        ("shared_locks", ctypes.c_uint64 * (LOCKS * LOCK_WORDS)),
        ("threads", CacheThread * MAX_CONTEXTS),
    ]


class CacheMemory:
    """Allocated once; it lives as long as the process may run instrumented code."""

    def __init__(self, geometry: Geometry | None, threads: int) -> None:
        """Without a geometry nothing is modelled. ``threads``: how many will be instrumented. Raises ``OSError`` where
        there is no address space."""
        self.geometry = geometry
        self.model = CacheModel(sharing=1)
        if geometry is not None:
            self._describe(geometry, threads)
            self.model.log = reserve(LOG_ENTRIES * ENTRY.itemsize)
            self.model.log_ends = reserve(MAX_EDGES * 8)

    def _describe(self, geometry: Geometry, threads: int) -> None:
        model = self.model
        model.levels = len(geometry.levels)
        model.line_shift = geometry.line_bytes.bit_length() - 1
        model.sharing = min(geometry.sharing, threads)
        for number, level in enumerate(geometry.levels):
            model.sets[number], model.ways[number] = level.sets, level.ways

    def begin(self, simulator: int) -> None:
        """From here on copies of code record. ``simulator``: the address of ``cache_consume``."""
        self.model.consume = simulator
        self.model.on = 1

    def entries(self, edges: int) -> tuple[Entries, npt.NDArray[np.int64]]:
        """What caches did up to so many edges, a copy: dtype ``ENTRY``; and for each edge how many there are up to
        it."""
        ends = np.frombuffer(ctypes.string_at(self.model.log_ends, edges * 8), dtype=np.int64)
        used = int(ends[-1]) if edges else 0
        log = np.frombuffer(ctypes.string_at(self.model.log, used * ENTRY.itemsize), ENTRY)
        return log, ends
