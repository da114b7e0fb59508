"""A perf event's ring buffer: the kernel writes records into it, this process takes them out."""

from __future__ import annotations

import ctypes
import errno
import mmap
from collections.abc import Callable
from typing import Final

from hwprof.unavailable import Unavailable

PAGE: Final = mmap.PAGESIZE
_HEAD: Final = 1024
_TAIL: Final = 1032
"""Offsets of data_head and data_tail in the first page (``struct perf_event_mmap_page``)."""

SMALLEST: Final = 8 * PAGE
"""A ring of fewer bytes would be full before anyone looks."""


class Cursor:
    """Where the kernel and the reader stand in a ring: two numbers that only grow."""

    def __init__(self, memory: mmap.mmap, data_bytes: int) -> None:
        self._memory = memory
        self._bytes = data_bytes
        self._head = ctypes.c_uint64.from_buffer(memory, _HEAD)
        self._tail = ctypes.c_uint64.from_buffer(memory, _TAIL)
        self._data = memoryview(memory)[PAGE : PAGE + data_bytes]

    def drain(self, write: Callable[[memoryview], object]) -> int:
        """Hands all whole records to ``write``, in one piece or in two where they reach over the ring's end, and gives
        their room back to the kernel; how many bytes that were.

        The kernel moves the head after its bytes are in place, and must not see the tail move before they are taken
        out. Processors that reorder memory accesses do so over some hundred instructions: the interpreter executes
        thousands between these lines.
        """
        head, tail = self._head.value, self._tail.value
        begin, unread = tail % self._bytes, head - tail
        first = min(unread, self._bytes - begin)
        if first:
            write(self._data[begin : begin + first])
        if unread > first:
            write(self._data[: unread - first])
        self._tail.value = head
        return unread

    def release(self) -> None:
        """Lets go of the memory, so that it can be unmapped."""
        self._data.release()
        del self._head, self._tail


class Ring:
    """The ring of an event, and of others whose output was sent there. It outlives its thread."""

    def __init__(self, fd: int, data_bytes: int) -> None:
        """Raises ``OSError``: EPERM where the user may not lock so much memory."""
        self._memory = mmap.mmap(fd, PAGE + data_bytes)
        self._cursor = Cursor(self._memory, data_bytes)
        self.data_bytes = data_bytes

    def drain(self, write: Callable[[memoryview], object]) -> int:
        """As ``Cursor.drain``."""
        return self._cursor.drain(write)

    def close(self) -> None:
        """Gives the memory back; what was not drained is lost."""
        self._cursor.release()
        self._memory.close()


def ring_bytes(bytes_per_s: int) -> int:
    """A ring that takes more than a second to fill: a power of two."""
    return max(SMALLEST, 1 << max(0, bytes_per_s - 1).bit_length())


def map_ring(fd: int, data_bytes: int) -> Ring:
    """A ring of that size, or of half, a quarter, … where this user may not lock more memory. Raises ``OSError`` where
    not even the smallest is allowed."""
    while True:
        try:
            return Ring(fd, data_bytes)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOMEM) or data_bytes // 2 < SMALLEST:
                raise
            data_bytes //= 2


def why_no_ring() -> Unavailable:
    """What to do where ``map_ring`` fails."""
    return Unavailable(
        "this user may not lock enough memory for ring buffers",
        "raise the limit: ulimit -l unlimited, or sudo sysctl kernel.perf_event_mlock_kb=4096",
    )
