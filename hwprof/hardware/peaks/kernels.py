"""The loops of ``kernels.c``, for the widest vectors that this processor has."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection
from importlib import resources
from pathlib import Path
from typing import Any, Final, NamedTuple

from hwprof import c_compiler

SOURCE: Final = "kernels.c"
LIBRARY: Final = "peaks"

CHAINS: Final = 12
"""Of ``kernels.c``: independent multiply-adds, or dependent additions, of a round."""

TRIAD_BYTES: Final = 24
"""A round's element, as STREAM counts it: two doubles read, one written. What the hardware reads of the line that it
writes to (without non-temporal stores) is not counted."""


class Arithmetic(NamedTuple):
    """A loop of multiply-adds; each is two operations."""

    what: str
    how: str
    symbol: str
    lanes: int  # multiply-adds an instruction
    flags: tuple[str, ...]  # of /proc/cpuinfo
    unit: str = "GFLOP/s"

    @property
    def operations(self) -> int:
        """Of a round."""
        return 2 * self.lanes * CHAINS


class Width(NamedTuple):
    """Of the loops that move data."""

    bits: int
    flags: tuple[str, ...]


ARITHMETIC: Final = (
    Arithmetic("fp32", "512-bit", "fma_512", 16, ("avx512f",)),
    Arithmetic("fp32", "256-bit", "fma_256", 8, ("avx2", "fma")),
    Arithmetic("fp32", "128-bit", "fma_128", 4, ()),
    Arithmetic("bf16", "512-bit", "bf16_512", 32, ("avx512f", "avx512_bf16")),
    Arithmetic("int8", "512-bit", "int8_512", 64, ("avx512f", "avx512_vnni"), "GOP/s"),
    Arithmetic("int8", "256-bit", "int8_256", 32, ("avx2", "avx_vnni"), "GOP/s"),
)
"""The first of a kind that the processor has is its widest."""

WIDTHS: Final = (Width(512, ("avx512f",)), Width(256, ("avx2", "fma")), Width(128, ()))


class Kernels:
    """Of one library. Each call gives the interpreter's lock back while it runs."""

    def __init__(self, library: Any, flags: Collection[str]) -> None:
        self._library = library
        self._flags = frozenset(flags)
        self.width = next(one for one in WIDTHS if self._flags.issuperset(one.flags))

    @classmethod
    def compiled(cls, flags: Collection[str]) -> tuple[Kernels, Path]:
        """The loops, and the library that they are in. Raises ``c_compiler.NoLibraryError``."""
        source = resources.files(__package__ or "").joinpath(SOURCE).read_bytes()
        path = c_compiler.compiled(LIBRARY, source)
        return cls(ctypes.CDLL(str(path)), flags), path

    def arithmetic(self) -> list[Arithmetic]:
        """The widest of each kind, as far as the compiler knew it."""
        found: dict[str, Arithmetic] = {}
        for one in ARITHMETIC:
            if self._flags.issuperset(one.flags) and hasattr(self._library, one.symbol):
                found.setdefault(one.what, one)
        return list(found.values())

    def multiply_adds(self, one: Arithmetic) -> Callable[[int], None]:
        """``rounds`` of it."""
        function = getattr(self._library, one.symbol)
        function.argtypes, function.restype = [ctypes.c_int64, ctypes.c_float, ctypes.c_float], ctypes.c_float
        return lambda rounds: function(rounds, 0.5, 0.5)

    @property
    def past_caches(self) -> bool:
        """Whether there is a triad with non-temporal stores."""
        return hasattr(self._library, f"triad_nt_{self.width.bits}")

    def triad(self, arrays: Arrays, *, past_caches: bool = False) -> Callable[[int], None]:
        """``rounds`` of a = b + s c over all elements."""
        function = getattr(self._library, f"triad_{'nt_' if past_caches else ''}{self.width.bits}")
        function.argtypes = [*[ctypes.c_void_p] * 3, ctypes.c_int64, ctypes.c_int64, ctypes.c_double]
        function.restype = None
        return lambda rounds: function(*arrays.addresses, arrays.elements, rounds, 3.0)

    def read(self, arrays: Arrays) -> Callable[[int], None]:
        """``rounds`` of a sum over all bytes of the three arrays, which lie side by side."""
        function = getattr(self._library, f"read_{self.width.bits}")
        function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64], ctypes.c_double
        return lambda rounds: function(arrays.addresses[0], 3 * arrays.elements, rounds)

    def chase(self, first: int) -> Callable[[int], None]:
        """``steps`` from one line to the next, from that address on."""
        function = self._library.chase
        function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_int64], ctypes.c_void_p
        return lambda steps: function(first, steps)

    def additions(self) -> Callable[[int], None]:
        """``rounds`` of a chain of ``CHAINS`` additions, one a cycle."""
        function = self._library.additions
        function.argtypes, function.restype = [ctypes.c_int64, ctypes.c_uint64], ctypes.c_uint64
        return lambda rounds: function(rounds, 1)


class Arrays(NamedTuple):
    """Three arrays of doubles, one behind the other."""

    addresses: tuple[int, int, int]
    elements: int  # of each
