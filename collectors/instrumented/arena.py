"""Address space for copied code, all of it within 2 GB: what frida allocates later must be in reach of what it
allocated first, and an increment in reach of its counter. In a process full of libraries and tensors there is no room
left around a place that the kernel chose, and frida crashes when it finds none.

So a region is reserved in time. It holds the threads' counters, and gaps for frida in which nothing much larger than
its blocks of code fits. While threads begin to be instrumented, all gaps above it are plugged, so that their first
allocations come to lie in the region too: the kernel gives the highest gap that fits.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

PROT_NONE: Final = 0
PROT_READ_WRITE: Final = 3
MADV_DONTNEED: Final = 4
MAP_PRIVATE_ANONYMOUS: Final = 0x22
MAP_FIXED: Final = 0x10
MAP_NORESERVE: Final = 0x4000
MAP_FIXED_NOREPLACE: Final = 0x100000
FAILED: Final = ctypes.c_void_p(-1).value

MIB: Final = 1 << 20
REGION: Final = 1792 * MIB
GAP: Final = 6 * MIB
"""frida takes blocks of up to 4 MB of code, and of less than 1 MB of data."""

WALL: Final = 64 << 10
"""Between two gaps, so that no larger thing fits: a tensor, a thread's stack."""

LEAST_PLUG: Final = 64 << 10

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Arena:
    """The region of one process. It is never given back."""

    def __init__(self, counters_bytes: int) -> None:
        """``counters_bytes``: of all threads together; they lie at ``counters``. Raises ``OSError``."""
        self.start = _map(0, REGION, PROT_NONE)
        self.end = self.start + REGION
        self.counters = _map(self.start, counters_bytes, PROT_READ_WRITE, MAP_FIXED)
        self.gaps = 0
        place = self.start + _whole_pages(counters_bytes) + WALL
        while place + GAP + WALL <= self.end:
            _libc.munmap(place, GAP)
            self.gaps += 1
            place += GAP + WALL

    def __contains__(self, address: int) -> bool:
        return self.start <= address < self.end

    @contextmanager
    def only_room(self) -> Iterator[None]:
        """For as long as the block runs, small allocations end up in the region."""
        plugs = [plug for plug in self._gaps_above() if _try_map(*plug)]
        try:
            yield
        finally:
            for start, size in plugs:
                _libc.munmap(start, size)

    def _gaps_above(self) -> list[tuple[int, int]]:
        """Start and size of each."""
        gaps, last = [], self.end
        for line in Path("/proc/self/maps").read_text().splitlines():
            start, end = (int(address, 16) for address in line.split(maxsplit=1)[0].split("-"))
            if start - last >= LEAST_PLUG and "[vsyscall]" not in line:
                gaps.append((last, start - last))
            last = max(last, end)
        return gaps


def reserve(size: int) -> int:
    """Address space that becomes memory where it is written."""
    return _map(0, size, PROT_READ_WRITE)


def give_back(address: int, size: int) -> None:
    """What ``reserve`` gave is address space again, until it is written to."""
    _libc.madvise(address, size, MADV_DONTNEED)


def _map(address: int, size: int, protection: int, flags: int = 0) -> int:
    made = _libc.mmap(address, size, protection, MAP_PRIVATE_ANONYMOUS | MAP_NORESERVE | flags, -1, 0)
    if made in (FAILED, None):
        error = ctypes.get_errno()
        raise OSError(error, f"no address space: {os.strerror(error)}")
    return int(made)


def _try_map(start: int, size: int) -> bool:
    try:
        made = _map(start, size, PROT_NONE, MAP_FIXED_NOREPLACE)
    except OSError:  # taken meanwhile, or not for processes (above the stack)
        return False
    if made != start:  # a kernel that takes the address for a hint
        _libc.munmap(made, size)
    return made == start


def _whole_pages(size: int) -> int:
    return -(-size // 4096) * 4096
