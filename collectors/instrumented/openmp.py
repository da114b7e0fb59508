"""The OpenMP runtime of the process: the pool's threads can be made to call a function each."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Final

from hwprof.errors import HwprofError

RUNTIMES: Final = ("libgomp", "libiomp5", "libomp")
"""GNU's, which PyTorch's wheels bring; Intel's and LLVM's, which understand calls that were compiled for it."""


class OpenMP:
    """The runtime that is loaded already, or none: then only the calling thread is served."""

    def __init__(self) -> None:
        """Raises ``HwprofError`` for one that cannot be asked."""
        self.path = _loaded()
        self._library = ctypes.PyDLL(self.path) if self.path is not None else None
        if self._library is not None:
            if not hasattr(self._library, "GOMP_parallel"):
                raise HwprofError(f"{self.path} cannot let its threads be instrumented: it has no GOMP_parallel")
            self._library.GOMP_parallel.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
            self._library.GOMP_parallel.restype = None

    @property
    def threads(self) -> int:
        """How many threads a parallel region of the calling thread gets, itself included."""
        return int(self._library.omp_get_max_threads()) if self._library is not None else 1

    def each(self, function: int, argument: int = 0) -> None:
        """The calling thread and every other one of its pool call the C function at that address once, with the
        argument. The interpreter's lock is kept, so the function must not need it."""
        if self._library is None:
            ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(function)(argument)
        else:
            self._library.GOMP_parallel(function, argument, self.threads, 0)


def _loaded() -> str | None:
    paths = dict.fromkeys(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/" in line)
    return next((path for name in RUNTIMES for path in paths if Path(path).name.startswith(name)), None)
