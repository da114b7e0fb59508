"""The reference frequency: that of the time stamp counter, which x86-64 processors count at their nominal frequency
whatever they run at (Intel SDM vol. 3, 18.17; AMD APM vol. 2, 13.2.4)."""

from __future__ import annotations

import ctypes
import time
from typing import Final

from collectors.instrumented.machine_code import Function

READ_TIME_STAMP: Final = bytes.fromhex("0faee8 0f31 48c1e220 4809d0 c3")  # lfence; rdtsc; shl rdx, 32; or rax, rdx; ret

WINDOW_S: Final = 0.05
TRIES: Final = 20
"""How often the two clocks are read at either end: the closest pair counts, as an interruption falls between some."""


def reference_ghz() -> float:
    """Ticks of the time stamp counter per nanosecond of CLOCK_MONOTONIC_RAW, measured now."""
    counter = Function(READ_TIME_STAMP, ctypes.c_uint64)
    ticks, began_ns = _read(counter)
    time.sleep(WINDOW_S)
    later, ended_ns = _read(counter)
    return (later - ticks) / (ended_ns - began_ns)


def _read(counter: Function) -> tuple[int, float]:
    """Both clocks at the same moment, to within the time that reading one takes."""
    readings = []
    for _ in range(TRIES):
        before_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        ticks = int(counter.call())
        after_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        readings.append((after_ns - before_ns, ticks, (before_ns + after_ns) / 2))
    _, ticks, at_ns = min(readings)
    return ticks, at_ns
