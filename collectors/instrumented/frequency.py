"""The reference frequency: that of the time stamp counter, which x86-64 processors count at their nominal frequency
whatever they run at (Intel SDM vol. 3, 18.17; AMD APM vol. 2, 13.2.4)."""

from __future__ import annotations

import ctypes
import time
from typing import Final

from collectors.instrumented.machine_code import Function

READ_TIME_STAMP: Final = bytes.fromhex("0faee8 0f31 48c1e220 4809d0 c3")  # lfence; rdtsc; shl rdx, 32; or rax, rdx; ret

WINDOW_S: Final = 0.05
"""Long enough for five digits: reading both clocks takes less than 0.1 µs."""


def reference_ghz() -> float:
    """Ticks of the time stamp counter per nanosecond of CLOCK_MONOTONIC_RAW, measured now."""
    counter = Function(READ_TIME_STAMP, ctypes.c_uint64)
    counter.call()  # the first call brings the page in
    ticks, began_ns = counter.call(), time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
    time.sleep(WINDOW_S)
    ticks, elapsed_ns = counter.call() - ticks, time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) - began_ns
    return float(ticks / elapsed_ns)
