"""A core clock that falls while the work goes on: power or heat."""

from __future__ import annotations

from typing import Final

from hwprof.analysis.findings.facts import Facts, Finding

LEAST: Final = 0.05
"""Of the first frequency; probes of a steady core differ by 2%."""


def find(facts: Facts) -> Finding | None:
    """Where the last probes are below the first ones by more than either vary, and so were those before the last. In a
    virtual machine it is the host's: what its other guests do sets the clock, and nobody here can cool it (the same
    run fell from 2.99 to 2.55 GHz, and had not an hour before)."""
    if facts.clock is None or facts.virtual:
        return None
    first, _, third, last = facts.clock
    lost = 1 - last.value / first.value if first.value > 0 else 0.0
    if lost < LEAST or max(third.high, last.high) >= first.low:
        return None
    return Finding(
        rule="clock_drop",
        title="the core clock falls during the run",
        evidence=f"{first.value:.2f} GHz at first ({first.low:.2f} to {first.high:.2f}),"
        f" {last.value:.2f} at last ({last.low:.2f} to {last.high:.2f})",
        meaning="the processor keeps to its power or heat limit: what runs for long gets less than what begins",
        remedy="better cooling or a higher power limit; fewer threads keep a higher clock each",
        gain_low=0.0,  # what waits for memory does not get faster with the clock
        gain_high=min(1.0, max(0.0, lost)),
    )
