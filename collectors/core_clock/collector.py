"""The collector core_clock: the core's frequency just before and just after each iteration.

Cycles are counted by hardware, where it lets. Where it does not, processor time x this frequency are the cycles of the
work, as far as the cores run alike.
"""

from __future__ import annotations

import platform
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from hwprof.collector.contract import Availability, Collected, Collector, Note, PassContext, Unavailable
from hwprof.hardware.machine import ROOT, cpuinfo
from hwprof.run.details import CoreClockDetail

if TYPE_CHECKING:  # the command line lists collectors without compiled code and tables
    from collectors.core_clock.probe import Probe
    from collectors.shared.time_stamp_counter import TickLength

SERIES: Final = "core-clock"

ALIKE: Final = 0.08
"""By how much the two chains may differ: a latency that is not what it is taken for is off by a quarter or more. They
are timed one after the other, and a frequency that rises or falls meanwhile takes them apart by some per cent."""

STEADY: Final = "constant_tsc"
"""The time stamp counter's rate does not change with the core's."""


class CoreClockCollector(Collector):
    """Times chains of instructions at the edges of iterations, on the thread that calls the model."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        self._probe: Probe | None = None
        self._length: TickLength | None = None
        self._found: list[tuple[int, float, float]] = []  # when (ns), cycles per tick by either chain

    def availability(self) -> Availability:
        """Whether there is a time stamp counter of constant rate."""
        if platform.machine() != "x86_64" or platform.system() != "Linux":
            return Availability.no(f"it times instructions of x86-64 on Linux, not on {platform.machine()}")
        flags = cpuinfo(self._root).flags
        if not flags:
            return Availability.no("/proc/cpuinfo does not tell what the processor can")
        if STEADY not in flags:
            return Availability.no("the time stamp counter's rate is not constant on this processor")
        return Availability()

    def start(self, context: PassContext) -> None:
        """Makes the chains, and goes through them once."""
        from collectors.core_clock.probe import Probe
        from collectors.shared.time_stamp_counter import TickLength

        self._probe, self._length = Probe(), TickLength()
        self._probe()

    def iteration_edge(self) -> None:
        """About 50 µs on the core that did the work, or will do it."""
        if self._probe is not None:
            self._found.append((time.monotonic_ns(), *self._probe()))

    def stop(self) -> Collected:
        """The frequency over time; none where the chains disagree."""
        if self._length is None or not self._found:
            return Collected()
        import polars as pl

        ghz = self._length.ticks_per_ns()
        differing = median(abs(one / other - 1) for _, one, other in self._found)
        detail = CoreClockDetail(
            series=SERIES, probes=len(self._found), chains_apart=round(differing, 5), reference_ghz=round(ghz, 5)
        )
        if differing > ALIKE:
            reason = f"chains of multiplications and of additions are {100 * differing:.0f}% apart on this processor"
            return Collected(notes=[Note.not_available(SERIES, Unavailable(reason))], detail=detail)
        rows = [{"time_ns": at_ns, "value": ghz * cycles} for at_ns, cycles, _ in self._found]
        frame = pl.DataFrame(rows).with_columns(name=pl.lit(SERIES), unit=pl.lit("GHz"))
        return Collected(tables={"series": frame}, detail=detail)
