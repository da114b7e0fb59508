"""Arrays that are many megabytes together: what comes after the first few lies in files, and is in memory only while
somebody looks at it."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from collectors.shared.nameless_file import NamelessFile

Array = npt.NDArray[Any]

IN_MEMORY_BYTES: Final = 16 << 20
"""So much stays in memory: of most models that is all."""

WORD_BYTES: Final = 8
"""The widest number; each array begins at a multiple of it."""


class Spill:
    """Where there is no room on the disk, memory is what is left. Several threads may put arrays."""

    def __init__(self, folder: Path | None = None, in_memory_bytes: int = IN_MEMORY_BYTES) -> None:
        """``folder``: that has room; None: that for temporary files."""
        self._folder = folder
        self._left_bytes = in_memory_bytes
        self._maps: list[mmap.mmap] = []
        self._lock = threading.Lock()

    def put(self, arrays: Sequence[Array]) -> list[Array]:
        """The same arrays, of one dimension, not to be written to."""
        size = sum(array.nbytes for array in arrays)
        with self._lock:
            self._left_bytes -= size
            if self._left_bytes >= 0 or not size:
                return list(arrays)
        try:
            file = NamelessFile(self._folder)
            try:
                file.append(memoryview(b"".join(map(_aligned, arrays))))
                there = file.mapped()
            finally:
                file.close()
        except OSError:
            return list(arrays)
        with self._lock:
            self._maps.append(there)
        return _views(there, arrays)

    def give_back(self) -> None:
        """What lies in files is not needed for now."""
        for there in self._maps:
            there.madvise(mmap.MADV_DONTNEED)


def _aligned(array: Array) -> bytes:
    return array.tobytes() + bytes(_padding(array))


def _padding(array: Array) -> int:
    """Bytes, so that numbers of any kind may follow."""
    return -array.nbytes % WORD_BYTES


def _views(there: mmap.mmap, arrays: Sequence[Array]) -> list[Array]:
    views, begin = list[Array](), 0
    for array in arrays:
        views.append(np.frombuffer(there, array.dtype, len(array), begin))
        begin += array.nbytes + _padding(array)
    return views
