"""The allocators that tell what they hold, by the functions that this process finds when it calls malloc."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Final, NamedTuple

Statistics = dict[str, int]
"""Bytes by name."""


class Library(NamedTuple):
    """An allocator of this process."""

    name: str
    read: Callable[[], Statistics]


class Mallinfo2(ctypes.Structure):
    """struct mallinfo2 of malloc.h (glibc 2.33): sums over all arenas."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"
        )
    ]  # fmt: skip


JEMALLOC: Final = {
    "in-use": b"stats.allocated",
    "resident": b"stats.resident",
    "mapped": b"stats.mapped",
    "retained": b"stats.retained",
}
TCMALLOC: Final = {
    "in-use": b"generic.current_allocated_bytes",
    "mapped": b"generic.heap_size",
    "free": b"tcmalloc.pageheap_free_bytes",
    "returned": b"tcmalloc.pageheap_unmapped_bytes",
}


def found(process: ctypes.CDLL | None = None) -> Library | None:
    """The allocator that malloc leads to; None: it is one that tells nothing."""
    own = process or ctypes.CDLL(None)
    return _jemalloc(own) or _tcmalloc(own) or _glibc(own)


def _jemalloc(process: ctypes.CDLL) -> Library | None:
    mallctl = getattr(process, "mallctl", None)
    if mallctl is None:
        return None

    def value(name: bytes) -> int | None:
        size, found = ctypes.c_size_t(ctypes.sizeof(ctypes.c_size_t)), ctypes.c_size_t()
        refused = mallctl(name, ctypes.byref(found), ctypes.byref(size), None, ctypes.c_size_t(0))
        return None if refused else found.value

    def read() -> Statistics:
        epoch = ctypes.c_uint64(1)  # statistics are those of the last time that this was written
        mallctl(b"epoch", None, None, ctypes.byref(epoch), ctypes.c_size_t(8))
        return _known({name: value(key) for name, key in JEMALLOC.items()})

    return Library("jemalloc", read) if read() else None


def _tcmalloc(process: ctypes.CDLL) -> Library | None:
    numeric = getattr(process, "MallocExtension_GetNumericProperty", None)
    if numeric is None:
        return None

    def value(name: bytes) -> int | None:
        found = ctypes.c_size_t()
        return found.value if numeric(name, ctypes.byref(found)) else None

    return Library("tcmalloc", lambda: _known({name: value(key) for name, key in TCMALLOC.items()}))


def _glibc(process: ctypes.CDLL) -> Library | None:
    mallinfo2 = getattr(process, "mallinfo2", None)
    if mallinfo2 is None:
        return None
    mallinfo2.restype = Mallinfo2

    def read() -> Statistics:
        told = mallinfo2()
        return {
            "in-use": told.uordblks + told.hblkhd,
            "free": told.fordblks,
            "heap": told.arena,
            "mapped": told.hblkhd,
        }

    return Library("glibc", read)


def _known(values: dict[str, int | None]) -> Statistics:
    return {name: value for name, value in values.items() if value is not None}
