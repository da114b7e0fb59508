"""Products of numbers that the processor has no instructions for."""

from __future__ import annotations

from typing import Final

from hwprof.analysis.findings.facts import Facts, Finding, counted, named

LEAST: Final = 0.05
"""Of the time, all of these layers together."""

LEAST_OF_ONE: Final = 0.005


def find(facts: Facts) -> Finding | None:
    """Where they take a share worth naming."""
    share = min(1.0, facts.time_of(facts.emulated, "compute") + facts.time_of(facts.emulated, "waiting"))
    if share < LEAST:
        return None
    longest = facts.longest(facts.emulated)
    layers = [one for one in facts.layers if one.path in facts.emulated and one.of_whole >= LEAST_OF_ONE]
    types = " and ".join(sorted(set(facts.emulated.values())))
    return Finding(
        rule="emulated_numbers",
        title=f"{types} on a processor that does not multiply them",
        evidence=f"{share:.1%} of the time in {counted(len(layers), 'layer', 'layers')}{named(longest)}",
        meaning="each number is converted to float32 and back, mostly in plain code: several times as slow as float32",
        remedy="model.float(), no autocast; or a processor with instructions for them",
        gain_low=0.0,
        gain_high=share,
        layers=longest,
    )
