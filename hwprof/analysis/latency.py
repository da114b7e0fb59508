"""Whether a layer's time is that of loads from DRAM, few of which are in flight at a time.

By Little's law as many lines are in flight, on average, as arrive a second times how long each takes. A chain of
loads has one (each needs the one before); code whose loads need nothing of one another as many as the core can have;
prefetchers many more, until they reach the bandwidth. What tells a core that waits for them from one that computes
meanwhile is how few instructions it gets done.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from hwprof.analysis.confidence import HIGH, LOW, MEDIUM

LINE_BYTES: Final = 64

ONE_AT_A_TIME: Final = (0.6, 1.6)
"""Lines in flight. Below, most of the time is no load's; a load takes up to half as long again as the peak's where
its page has to be looked up, and a little of it may overlap."""

SEVERAL: Final = (3.0, 24.0)
"""Lines in flight that a core asks for itself. With fewer it would get more at a time, if it waited for nothing else
(a window of 192 instructions has 4 to 5 of torch.take's loads); more are prefetchers' (L1 miss buffers: 10 to 24)."""

OF_BANDWIDTH: Final = 0.4
"""Of the DRAM roof: from here on bandwidth has a part in it."""

STALLED_CPI: Final = 2.5
"""Cycles an instruction, from which on a core mostly waits: cores complete four to eight a cycle. Copies that go past
the caches come near to 2."""

CHAIN_CPI: Final = 4.0
"""The same, of a chain of loads: hundreds of cycles for a few instructions."""

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

    @property
    def outstanding(self) -> float:
        """Lines in flight, of each thread: Little's law."""
        return self.gbytes * self.latency_ns / LINE_BYTES


def latency(loads: Loads) -> tuple[str, str] | None:
    """Evidence and confidence, where a layer's time is that of loads; None where that is not known."""
    chain, several = (low <= loads.outstanding <= high for low, high in (ONE_AT_A_TIME, SEVERAL))
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
    """``0.84 lines from DRAM in flight, 164 ns each, CPI 153, 1% of the DRAM roof, misses simulated``."""
    lines = f"{loads.outstanding:.2g} lines from DRAM in flight, {loads.latency_ns:.0f} ns each"
    source = "measured" if loads.measured else "simulated"
    return f"{lines}, {stalls}, {loads.share_of_roof:.0%} of the DRAM roof, misses {source}"
