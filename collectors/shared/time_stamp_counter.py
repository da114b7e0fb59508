"""The time stamp counter, which x86-64 processors count at their nominal frequency whatever they run at (Intel SDM vol.
3, 18.17; AMD APM vol. 2, 13.2.4): the reference frequency."""

from __future__ import annotations

import ctypes
import time
from typing import Final

from collectors.shared.machine_code import Function

READ: Final = bytes.fromhex("0faee8 0f31 48c1e220 4809d0")  # lfence; rdtsc; shl rdx, 32; or rax, rdx
RETURN: Final = b"\xc3"

WINDOW_S: Final = 0.05
TRIES: Final = 20
"""How often the two clocks are read at either end: the closest pair counts, as an interruption falls between some."""


class TickLength:
    """Compares the counter with CLOCK_MONOTONIC_RAW, from when it was made on."""

    def __init__(self) -> None:
        self._counter = Function(READ + RETURN, ctypes.c_uint64)
        self._ticks, self._began_ns = self._read()

    def ticks_per_ns(self) -> float:
        """Until now, at least over ``WINDOW_S``."""
        time.sleep(max(0.0, WINDOW_S - (time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) - self._began_ns) / 1e9))
        ticks, at_ns = self._read()
        return (ticks - self._ticks) / (at_ns - self._began_ns)

    def _read(self) -> tuple[int, float]:
        """Both clocks at the same moment, to within the time that reading one takes."""
        readings = []
        for _ in range(TRIES):
            before_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
            ticks = int(self._counter.call())
            after_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
            readings.append((after_ns - before_ns, ticks, (before_ns + after_ns) / 2))
        _, ticks, at_ns = min(readings)
        return ticks, at_ns


def reference_ghz() -> float:
    """Ticks of the time stamp counter per nanosecond, measured now."""
    return TickLength().ticks_per_ns()
