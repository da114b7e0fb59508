"""All rules, and what they find in a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hwprof.analysis.findings import (
    default_blas,
    dispatch,
    fresh_memory,
    layout_changes,
    memory_bound,
    postprocessing,
    scalar_pooling,
    team_waits,
)
from hwprof.analysis.findings.facts import Facts, Finding

RULES: Final[tuple[Callable[[Facts], Finding | None], ...]] = (
    layout_changes.find,
    fresh_memory.find,
    scalar_pooling.find,
    default_blas.find,
    memory_bound.find,
    team_waits.find,
    dispatch.find,
    postprocessing.find,
)


def find_all(facts: Facts) -> list[Finding]:
    """What could win most first."""
    found = [finding for rule in RULES if (finding := rule(facts)) is not None]
    return sorted(found, key=lambda one: (-one.gain_high, one.rule))
