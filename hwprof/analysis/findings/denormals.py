"""Numbers too small to be normal: many processors handle them in microcode."""

from __future__ import annotations

from typing import Final

from hwprof.analysis.findings.facts import Facts, Finding, at_most, counted, named

NOTABLE: Final = 0.01
"""Of a layer's numbers: a vector of 16 with any of them is slow, which is one in seven then."""

LEAST: Final = 0.02
"""Of the time, all of these layers together."""


def find(facts: Facts) -> Finding | None:
    """Where layers that read or write them take a share worth naming."""
    layers = [path for path, share in facts.denormals.items() if share >= NOTABLE]
    share = facts.time_of(layers, "compute")
    if share < LEAST:
        return None
    most_time = facts.time_at_most(layers, "compute")
    longest = facts.longest(layers)
    most = max(facts.denormals[path] for path in longest)
    return Finding(
        rule="denormals",
        title=f"{counted(len(layers), 'layer computes', 'layers compute')} with denormal numbers",
        evidence=f"up to {most:.0%} of their numbers are below 1.2e-38; {share:.1%} {facts.of_time}{named(longest)}"
        f"{at_most(most_time, share)}",
        meaning="such numbers stand for 0, and arithmetic with them takes many times as long on most processors",
        remedy="torch.set_flush_denormal(True), before the model is first called: threads inherit it",
        gain_low=0.0,
        gain_high=most_time,
        layers=longest,
        remedies=("flush_denormals",),
    )
