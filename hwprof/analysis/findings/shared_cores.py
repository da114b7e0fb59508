"""Two threads of the team on one core: they share its units, while other cores rest."""

from __future__ import annotations

from typing import Final

from hwprof.analysis.findings.facts import Facts, Finding

LEAST: Final = 0.2
"""Of the team's time."""

SMT_GAIN: Final = 0.5
"""Of that time, at most: with a core each, two threads take half as long where they need the same units."""


def find(facts: Facts) -> Finding | None:
    """Where they shared a core for long enough: more threads than cores, or threads that were placed so."""
    shared = facts.shared_core
    if shared is None or facts.cores is None or shared < LEAST or facts.cores < 2:
        return None
    too_many = facts.threads > facts.cores
    place = f"OMP_PLACES=cores OMP_PROC_BIND=spread, {facts.threads} threads have a core each then"
    return Finding(
        rule="shared_cores",
        title="more threads than cores" if too_many else "threads share cores while others rest",
        evidence=f"{shared:.0%} of the team's time with another of its threads on the same core;"
        f" {facts.threads} threads, {facts.cores} cores",
        meaning="a core's two hardware threads share its vector units and caches: for products they are one",
        remedy=facts.with_threads(facts.cores) if too_many else place,
        gain_low=0.0,
        gain_high=SMT_GAIN * min(1.0, shared),
        remedies=(f"threads={facts.cores}",) if too_many else ("bind_threads",),
    )
