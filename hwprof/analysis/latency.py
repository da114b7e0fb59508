"""Whether a layer's time is that of loads from DRAM, few of which are in flight at a time.

By Little's law as many lines are in flight, on average, as arrive a second times how long each takes. A chain of
loads has one (each needs the one before); code whose loads need nothing of one another as many as the core can have;
prefetchers many more, until they reach the bandwidth. What tells a core that waits for them from one that computes
meanwhile is how few instructions it gets done. How long a load takes is known between two figures: with its page's
entry at hand, and with that to be looked up in memory too.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from hwprof.analysis.confidence import HIGH, LOW, MEDIUM

LINE_BYTES: Final = 64

ONE_AT_A_TIME: Final = (0.6, 1.6)
"""Lines in flight. Below, most of the time is no load's; above, a core had more than one: a little may overlap, and a
smaller circle than the peak's finds more of its pages' entries in caches."""

SEVERAL: Final = (3.0, 24.0)
"""Lines in flight that a core asks for itself. With fewer it would get more at a time, if it waited for nothing else
(a window of 192 instructions has 4 to 5 of torch.take's loads); more are prefetchers' (L1 miss buffers: 10 to 24)."""

OF_BANDWIDTH: Final = 0.4
"""Of the DRAM roof: from here on bandwidth has a part in it."""

STALLED_CPI: Final = 2.5
"""Cycles an instruction, from which on a core mostly waits: cores complete four to eight a cycle. Copies that go past
the caches come near to 2."""

CHAIN_CPI: Final = 12.0
"""The same, of a chain of loads: hundreds of cycles for a few instructions. A chain of divisions, beside loads that
prefetchers have at hand, may take as long a line: a division of integers takes up to 46 cycles on a Zen 1, for some
four instructions."""

MEMORY_SLOTS: Final = 0.35
"""Of the pipeline's slots that wait for memory (top-down)."""

MOST_SLOTS: Final = 0.5
"""The same, where loads are no chain: caches may keep them waiting as well."""


class Loads(NamedTuple):
    """A layer's lines from DRAM."""

    gbytes: float  # GB/s, of each thread that works
    latency_ns: float
    share_of_roof: float  # of the bandwidth, by all threads
    cpi: float | None
    memory_slots: float | None  # share of slots
    measured: bool  # else simulated
    paged_latency_ns: float | None = None  # where the load's page has to be looked up too; None: not known

    @property
    def outstanding(self) -> float:
        """Lines in flight, of each thread: Little's law."""
        return self.gbytes * self.latency_ns / LINE_BYTES

    @property
    def most_outstanding(self) -> float:
        """The same, where each load's page has to be looked up."""
        return self.gbytes * self.longest_ns / LINE_BYTES

    @property
    def longest_ns(self) -> float:
        """Of a load."""
        return max(self.latency_ns, self.paged_latency_ns or 0.0)


def latency(loads: Loads) -> tuple[str, str] | None:
    """Evidence and confidence, where a layer's time is that of loads; None where that is not known."""
    chain = loads.outstanding <= ONE_AT_A_TIME[1] and loads.most_outstanding >= ONE_AT_A_TIME[0]
    several = SEVERAL[0] <= loads.outstanding <= SEVERAL[1]
    if loads.share_of_roof >= OF_BANDWIDTH or not (chain or several):
        return None
    if loads.memory_slots is not None and loads.measured:  # the pipeline itself says what it waits for
        sure = loads.memory_slots >= MOST_SLOTS
        if not sure and not (chain and loads.memory_slots >= MEMORY_SLOTS):
            return None
        waits = f"{loads.memory_slots:.0%} of the slots wait for memory"
        return _evidence(loads, waits), HIGH if chain and sure else MEDIUM
    if loads.cpi is None or loads.cpi < (CHAIN_CPI if chain else STALLED_CPI):
        return None
    confidence = (HIGH if chain else MEDIUM) if loads.measured else (MEDIUM if chain else LOW)
    return _evidence(loads, f"CPI {loads.cpi:.3g}"), confidence


def _evidence(loads: Loads, stalls: str) -> str:
    """``0.84 to 1.1 lines from DRAM in flight, 124 to 164 ns each, CPI 153, 1% of the DRAM roof, misses simulated``."""
    number = _span(f"{loads.outstanding:.2g}", f"{loads.most_outstanding:.2g}")
    each_ns = _span(f"{loads.latency_ns:.0f}", f"{loads.longest_ns:.0f}")
    lines = f"{number} lines from DRAM in flight, {each_ns} ns each"
    source = "measured" if loads.measured else "simulated"
    return f"{lines}, {stalls}, {loads.share_of_roof:.0%} of the DRAM roof, misses {source}"


def _span(least: str, most: str) -> str:
    """``0.84 to 1.1``; ``0.84`` where both are the same."""
    return least if least == most else f"{least} to {most}"
