"""Why layers and kernels have no CPI by samples' time, in few words; and the bounds behind that."""

from __future__ import annotations

from typing import Final

FEW: Final = "few samples"
WIDE: Final = "error of half or more"
TRACED: Final = "tracing's own work"
CLOCKED: Final = "reads the clock"
BEYOND: Final = "other work"
VARYING: Final = "calls vary"
OWN_CODE: Final = "own code"
OF_KERNEL: Final = "kernel code"
UNCOUNTED: Final = "not instrumented"

OTHER_WORK: Final = (CLOCKED, BEYOND, VARYING)
"""Of layers that did other work in the one pass than in the other, or in some iterations: no sum has them."""

MOST_CPI: Final = 500.0
"""More cycles an instruction takes on average in no code: a chain of loads, each from DRAM and the address of the next,
100 to 125 ns at 4 to 5 GHz. Beyond, the instrumented pass did less work than the sampled one."""

CLOCK_READS: Final = ("clock_gettime", "__clock_gettime", "__vdso_clock_gettime", "gettimeofday", "__gettimeofday",
                      "__vdso_gettimeofday")  # fmt: skip
BY_THE_CLOCK: Final = 0.05
"""From this share of its instructions on in reading the clock, a layer goes by the time: how often it does what it does
is another number in every pass. hwprof's own two reads a call are 150 instructions."""

MOST_TRACED: Final = 0.2
"""With more of a kernel's time that may be the sampled pass's own work, it has no CPI."""

MOST_ERROR: Final = 0.5
"""From this error on, half of the interval's width over the figure, there is none."""
