"""Memory of a thread's own, which it touches first: so it lies near this thread's processor."""

from __future__ import annotations

import ctypes
import mmap
import resource
from contextlib import suppress
from typing import Final

import numpy as np

from hwprof.hardware.peaks.kernels import Arrays
from hwprof.hardware.peaks.team import Loop

LINE_BYTES: Final = 64
"""Of every processor that is known here; on those with lines of 128 bytes two steps in one line make a chase no faster
than it would be by a few per cent."""

SKEW_BYTES: Final = 1088
"""Between arrays: where they are a multiple of 4 KiB apart, loads wait for stores that they have nothing to do with."""


class Memory:
    """So many bytes, of zeros."""

    def __init__(self, size: int, *, huge_pages: bool = False) -> None:
        self._map = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # shared has no huge pages
        if huge_pages:
            with suppress(OSError, AttributeError):  # a kernel without them
                self._map.madvise(mmap.MADV_HUGEPAGE)
        self.bytes = np.frombuffer(self._map, dtype=np.uint8)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))

    @classmethod
    def of_arrays(cls, size: int) -> tuple[Memory, Arrays]:
        """Three of a third of the size each, all of ones."""
        each = size // 3
        memory = cls(3 * (each + SKEW_BYTES))
        memory.bytes.view(np.float64)[:] = 1.0
        addresses = tuple(memory.address + place * (each + SKEW_BYTES) for place in range(3))
        return memory, Arrays(addresses, each // 8)  # type: ignore[arg-type]

    @classmethod
    def of_a_chase(cls, size: int, seed: int, *, huge_pages: bool) -> Memory:
        """Each line holds the address of another one; all of them make one circle, in random order. In huge pages
        (where the kernel has any) it is the line that takes the time, else the translation of addresses does too."""
        memory = cls(size, huge_pages=huge_pages)
        lines = size // LINE_BYTES
        order = np.random.default_rng(seed).permutation(lines).astype(np.uint64)
        words = memory.bytes.view(np.uint64)
        words[order * (LINE_BYTES // 8)] = np.uint64(memory.address) + np.roll(order, -1) * LINE_BYTES
        return memory


def renewed(size: int) -> tuple[Loop, int]:
    """A round takes so many bytes from the kernel, writes to each page, and gives them back, as a large block of
    ``malloc`` is; and the page faults of a round: with transparent huge pages fewer than there are pages."""

    def loop(rounds: int) -> None:
        for _ in range(rounds):
            Memory(size).bytes[:: mmap.PAGESIZE] = 1

    loop(1)
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    loop(1)
    return loop, max(1, resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before)
