"""Layers whose work one thread does, of a workload with several."""

from __future__ import annotations

from typing import Final

from hwprof.analysis.findings.facts import Facts, Finding, named

LEAST: Final = 0.1
"""Of the time, all of these layers' own kernels together."""

COMPUTES: Final = 0.5
"""Of a layer's time in its own kernels: one that is mostly dispatch would not be shared out either."""


def find(facts: Facts) -> Finding | None:
    """Where their kernels take a share worth naming."""
    if facts.threads < 2:
        return None
    serial = set(facts.serial)
    layers = [one.path for one in facts.layers if one.path in serial and one.of_left("compute") >= COMPUTES]
    share = facts.time_of(layers, "compute")
    if share < LEAST:
        return None
    longest = facts.longest(layers)
    sharing = min(facts.threads, facts.processors)
    return Finding(
        rule="serial_layers",
        title=f"{len(layers)} layers run on one of {facts.threads} threads",
        evidence=f"{share:.1%} of the time in their kernels{named(longest)}",
        meaning="the operator is not shared out: it has no parallel code, or PyTorch takes its input for too small",
        remedy="a larger batch; operators with parallel code (one on a whole tensor for many on parts of it)",
        gain_low=0.0,
        gain_high=share * (1 - 1 / max(2, sharing)),
        layers=longest,
    )
