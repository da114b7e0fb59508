"""Reads the counter groups of an edge, row after row, into one buffer: by a small C function, or else by Python.

Where the C source beside this module cannot be compiled (``group_reads_library``), Python reads the same rows, only
slower: counting never depends on a compiler.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Final, Protocol

from collectors.shared.counting.group_reads_library import NoLibraryError, library
from hwprof.hardware import perf_event

CONFIG_DUMMY: Final = 9  # PERF_COUNT_SW_DUMMY: counts nothing
DOORBELL: Final = perf_event.Attributes(perf_event.TYPE_SOFTWARE, CONFIG_DUMMY, exclude_kernel=True, disabled=False)

NOT_READ: Final = -1
"""No counter group's first word, which is how many events it has."""

RESERVE: Final = (1 << 20, 1 << 14)
"""Bytes of rows and number of edges that there is room for at first."""


class GroupReads(Protocol):
    """Reads descriptors, a row of a fixed size from each, at edges."""

    @property
    def edges(self) -> int:
        """How many edges have been read, those taken included."""
        ...

    def begin(
        self, fds: Sequence[int], sizes: Sequence[int], tids: Sequence[int], orders: Mapping[int, Sequence[int]]
    ) -> None:
        """From now on there are these descriptors, whose rows have ``sizes`` bytes and count the threads ``tids``; the
        reader of mark m reads those at the positions ``orders[m]``, in that order. Call it after the groups have been
        switched on, and again before any of the descriptors is closed and another one takes its number."""
        ...

    def reader(self, mark: int) -> Callable[[], None]:
        """The function that reads an edge and notes ``mark`` (0 to 255) for it; it stays valid."""
        ...

    def take(self) -> tuple[bytes, bytes]:
        """The marks of the edges since the last take, a byte each, and their rows one after the other, which are
        then forgotten. Each 64-bit word of a row that did not come whole is ``NOT_READ``. To be called between
        iterations, so that the buffer stays small and edges find it in memory."""
        ...


def make_group_reads(certain: frozenset[int] = frozenset()) -> GroupReads:
    """The fastest that works here; never fails. The readers of the marks ``certain`` also read the threads that are
    known to sleep: where nothing may be lost, and to prove that they did sleep."""
    try:
        return NativeGroupReads(library(), certain)
    except NoLibraryError as why:
        return PythonGroupReads(why=why)


class PythonGroupReads:
    """``GroupReads`` in Python: about 0.2 µs more a row, and a thread that sleeps is read like any other."""

    def __init__(self, read: Callable[[int, int], bytes] = os.read, why: NoLibraryError | None = None) -> None:
        """``why``: there is no faster one."""
        self.why = why
        self._read = read
        self._marks = bytearray()
        self._rows: list[bytes] = []
        self._taken = 0
        self._orders: dict[int, list[tuple[int, int]]] = {}  # changed in place: the readers hold the lists

    @property
    def edges(self) -> int:
        """How many edges have been read."""
        return self._taken + len(self._marks)

    def begin(
        self, fds: Sequence[int], sizes: Sequence[int], tids: Sequence[int], orders: Mapping[int, Sequence[int]]
    ) -> None:
        """From now on there are these descriptors."""
        for mark in self._orders.keys() | orders.keys():
            self._order(mark)[:] = [(fds[position], sizes[position]) for position in orders.get(mark, ())]

    def reader(self, mark: int) -> Callable[[], None]:
        """The function that reads an edge of that mark."""
        note, keep, read, order = self._marks.append, self._rows.append, self._read, self._order(mark)

        def edge() -> None:
            note(mark)
            for fd, size in order:
                try:
                    row = read(fd, size)
                except OSError:
                    row = b""
                keep(row if len(row) == size else b"\xff" * size)

        return edge

    def take(self) -> tuple[bytes, bytes]:
        """Marks and rows."""
        marks, rows = bytes(self._marks), b"".join(self._rows)
        self._marks.clear()
        self._rows.clear()
        self._taken += len(marks)
        return marks, rows

    def _order(self, mark: int) -> list[tuple[int, int]]:
        return self._orders.setdefault(mark, [])


class NativeGroupReads:
    """``GroupReads`` by the C function: an edge is one call of a built-in, and sleeping threads are not read again."""

    def __init__(
        self, code: ctypes.PyDLL, certain: frozenset[int] = frozenset(), *, doorbells: bool | None = None
    ) -> None:
        """``doorbells``: whether to skip the threads that sleep; None: where the kernel is seen to ring."""
        self._code = code
        self._certain = certain
        self._group_reads: int = code.group_reads_new()
        self._readers: dict[int, tuple[int, Callable[[], None]]] = {}
        self._taken = 0
        self._reserve = RESERVE
        self._pages: dict[int, int] = {}  # by thread: the address of its doorbell's page
        self._doorbells = rings(code) if doorbells is None else doorbells
        self._close = weakref.finalize(self, _close, code, self._group_reads, self._pages)

    @property
    def edges(self) -> int:
        """How many edges have been read."""
        return self._taken + int(self._code.group_reads_marks(self._group_reads, _NOWHERE))

    @property
    def doorbells(self) -> bool:
        """Whether threads that sleep are skipped."""
        return self._doorbells and not self._code.group_reads_bell_failed(self._group_reads)

    def begin(
        self, fds: Sequence[int], sizes: Sequence[int], tids: Sequence[int], orders: Mapping[int, Sequence[int]]
    ) -> None:
        """From now on there are these descriptors."""
        count = len(fds)
        self._watch(set(tids) - {threading.get_native_id()} if self.doorbells else set())
        pages = [self._pages.get(tid) for tid in tids]
        self._must(
            self._code.group_reads_begin(
                self._group_reads,
                count,
                (ctypes.c_int * count)(*fds),
                (ctypes.c_size_t * count)(*sizes),
                (ctypes.c_void_p * count)(*pages),
            )
        )
        for mark, positions in orders.items():
            if not all(0 <= position < count for position in positions):
                raise IndexError(f"no such descriptor: {max(positions)} of {count}")
            order = (ctypes.c_uint32 * len(positions))(*positions)
            self._must(self._code.group_reads_order(self._reader(mark)[0], len(positions), order))
        self._must(self._code.group_reads_reserve(self._group_reads, *self._reserve))

    def reader(self, mark: int) -> Callable[[], None]:
        """The function that reads an edge of that mark."""
        return self._reader(mark)[1]

    def take(self) -> tuple[bytes, bytes]:
        """Marks and rows."""
        start = ctypes.c_void_p()
        length = self._code.group_reads_marks(self._group_reads, ctypes.byref(start))
        marks = ctypes.string_at(start, length) if length else b""
        length = self._code.group_reads_rows(self._group_reads, ctypes.byref(start))
        rows = ctypes.string_at(start, length) if length else b""
        self._code.group_reads_clear(self._group_reads)
        self._taken += len(marks)
        self._reserve = max(self._reserve, (2 * len(rows), 2 * len(marks)))
        return marks, rows

    def close(self) -> None:
        """Gives pages and buffers back; readers read nothing from then on."""
        self._close()

    def _reader(self, mark: int) -> tuple[int, Callable[[], None]]:
        if mark not in self._readers:
            reader = self._code.group_reads_reader(self._group_reads, mark, mark in self._certain)
            self._readers[mark] = reader, self._code.group_reads_function(reader)
        return self._readers[mark]

    def _watch(self, tids: set[int]) -> None:
        """Doorbells on these threads and no others; a thread that gets none (no descriptors left, too much locked
        memory) is simply read each time."""
        for tid in self._pages.keys() - tids:
            self._code.group_reads_unmap(self._pages.pop(tid))
        for tid in tids - self._pages.keys():
            if (page := _doorbell(self._code, tid)) is not None:
                self._pages[tid] = page

    @staticmethod
    def _must(done: int) -> None:
        if not done:
            raise MemoryError


_NOWHERE: Final = ctypes.byref(ctypes.c_void_p())


def _close(code: ctypes.PyDLL, group_reads: int, pages: dict[int, int]) -> None:
    code.group_reads_close(group_reads)
    for page in pages.values():
        code.group_reads_unmap(page)
    pages.clear()


def _doorbell(code: ctypes.PyDLL, tid: int) -> int | None:
    """The page of a dummy event on the thread; the mapping outlives the descriptor."""
    try:
        fd = perf_event.open_event(DOORBELL, tid)
    except OSError:
        return None
    page: int | None = code.group_reads_map(fd)
    os.close(fd)
    return page


@cache
def rings(code: ctypes.PyDLL) -> bool:
    """Whether this kernel rings a doorbell when it schedules a thread in, and its clock moves between two reads: if
    not, a thread that sleeps cannot be distinguished from one that runs. Tried on the calling thread."""
    page = _doorbell(code, 0)
    if page is None:
        return False
    try:
        before = code.group_reads_rung(page)
        time.sleep(1e-4)
        rung = bool(code.group_reads_rung(page) != before)
    finally:
        code.group_reads_unmap(page)
    try:
        fd = perf_event.open_event(DOORBELL)
    except OSError:
        return False
    try:
        times_ns = [perf_event.read_group(fd, 1)[0] for _ in range(8)]
    finally:
        os.close(fd)
    return rung and all(late > early for early, late in pairwise(times_ns))
