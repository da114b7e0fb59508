"""Machine code of one's own, as a function of Python's."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any, Final


class Function:
    """Machine code in memory, callable by its address or from Python, which keeps its lock meanwhile."""

    def __init__(self, code: bytes, result: Any = ctypes.c_long, *arguments: Any) -> None:
        protection = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
        self._memory = mmap.mmap(-1, len(code), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=protection)
        self._memory.write(code)
        buffer: Any = (ctypes.c_char * 0).from_buffer(self._memory)
        self.start: Final = ctypes.addressof(buffer)
        self.end: Final = self.start + len(code)
        self.call = ctypes.PYFUNCTYPE(result, *arguments)(self.start)
