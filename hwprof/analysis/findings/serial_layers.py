"""Layers whose work one thread does, of a workload with several."""

from __future__ import annotations

from typing import Final

from hwprof.analysis.findings.facts import Facts, Finding, counted, named

LEAST: Final = 0.1
"""Of the time, all of these layers' own kernels together."""

COMPUTES: Final = 0.5
"""Of a layer's time in its own kernels, or waiting for another thread's: one that is mostly dispatch would not be
shared out either."""


def find(facts: Facts) -> Finding | None:
    """Where their kernels take a share worth naming."""
    if facts.threads < 2:
        return None
    serial = set(facts.serial)
    layers = [
        one.path
        for one in facts.layers
        if one.path in serial and one.of_left("compute") + one.of_left("waiting") >= COMPUTES
    ]
    share = min(1.0, facts.time_of(layers, "compute") + facts.time_of(layers, "waiting"))
    if share < LEAST:
        return None
    longest = facts.longest(layers)
    sharing = min(facts.threads, facts.processors)
    return Finding(
        rule="serial_layers",
        title=f"{counted(len(layers), 'layer runs', 'layers run')} on one of {facts.threads} threads",
        evidence=f"{share:.1%} of the time in their kernels, or waiting for the thread that is{named(longest)}",
        meaning="one thread has nearly all of the work: no parallel code, an input that PyTorch takes for too small, or"
        " one part that is nearly all of it",
        remedy="a larger batch; operators with parallel code (one on a whole tensor for many on parts of it)",
        gain_low=0.0,
        gain_high=share * (1 - 1 / max(2, sharing)),
        layers=longest,
    )
