"""Code that oneDNN falls back to: reference implementations, or vectors shorter than the processor's."""

from __future__ import annotations

from typing import Final

from hwprof.analysis.findings.facts import Facts, Finding, named

LEAST: Final = 0.02


def find(facts: Facts) -> Finding | None:
    """The one that takes most, where that is a share worth naming, and something better is known."""
    known = [one for one in facts.fallbacks if one.remedy is not None]
    most = max(known, key=lambda one: one.share, default=None)
    if most is None or most.remedy is None or most.share < LEAST:
        return None
    layers = list(most.layers[:3])
    return Finding(
        rule="fallback_code",
        title=f"oneDNN takes {most.implementation}",
        evidence=f"{most.share:.1%} of the time{named(layers)}",
        meaning=most.reason,
        remedy=most.remedy,
        gain_low=0.0,
        gain_high=min(1.0, most.share),
        layers=layers,
    )
