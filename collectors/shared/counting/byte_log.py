"""Bytes that become many while a pass runs, one after the other: what comes after the first few megabytes lies in a
file that nobody else sees."""

from __future__ import annotations

import mmap
from typing import Final

from collectors.shared.nameless_file import NamelessFile

IN_MEMORY_BYTES: Final = 16 << 20


class ByteLog:
    """Where there is no room on the disk, memory is what is left."""

    def __init__(self, in_memory_bytes: int = IN_MEMORY_BYTES) -> None:
        """``in_memory_bytes``: with more than that in memory, all of it is written away."""
        self._in_memory_bytes = in_memory_bytes
        self._memory = bytearray()  # what comes after the file
        self._file: NamelessFile | None = None
        self._in_file = 0
        self._has_room = True
        self._map: mmap.mmap | None = None

    def __len__(self) -> int:
        return self._in_file + len(self._memory)

    def append(self, data: bytes) -> None:
        """More."""
        self._memory += data
        if len(self._memory) <= self._in_memory_bytes or not self._has_room:
            return
        try:
            self._file = self._file or NamelessFile()
            self._file.append(memoryview(self._memory))
        except OSError:  # what it has written of this, nobody reads
            self._has_room = False
            return
        self._in_file += len(self._memory)
        self._memory = bytearray()

    def read(self, begin: int, end: int) -> bytes:
        """From one place to another one."""
        in_memory = self._memory[max(0, begin - self._in_file) : max(0, end - self._in_file)]
        if begin >= self._in_file or self._file is None:
            return bytes(in_memory)
        if self._map is None or len(self._map) < self._in_file:
            self._map = self._file.mapped()
        return self._map[begin : min(end, self._in_file)] + in_memory
