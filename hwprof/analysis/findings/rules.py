"""All rules, and what they find in a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from hwprof.analysis.findings import (
    blocked,
    clock_drop,
    default_blas,
    denormals,
    dispatch,
    emulated_numbers,
    fallback_code,
    fresh_memory,
    garbage_collection,
    imbalance,
    layout_changes,
    long_stage,
    memory_bound,
    numa_placement,
    oversubscription,
    python_code,
    repeated_pooling,
    scalar_pooling,
    serial_layers,
    shared_cores,
    team_waits,
    weight_reorders,
)
from hwprof.analysis.findings.facts import Facts, Finding
from hwprof.remedies.catalogue import group_of, taken, title_of

RULES: Final[tuple[Callable[[Facts], Finding | None], ...]] = (
    layout_changes.find,
    fresh_memory.find,
    scalar_pooling.find,
    default_blas.find,
    memory_bound.find,
    team_waits.find,
    dispatch.find,
    long_stage.find,
    oversubscription.find,
    denormals.find,
    repeated_pooling.find,
    python_code.find,
    garbage_collection.find,
    weight_reorders.find,
    shared_cores.find,
    numa_placement.find,
    clock_drop.find,
    serial_layers.find,
    imbalance.find,
    fallback_code.find,
    emulated_numbers.find,
    blocked.find,
)

COMPILE: Final = "compile"
COMPILED: Final = "it is compiled already: a larger batch, or fewer breaks of its graph (TORCH_LOGS=graph_breaks)"


def names() -> list[str]:
    """Of the rules, in their order: as ``Finding.rule`` says them."""
    return [rule.__module__.rpartition(".")[2] for rule in RULES]


def _without_compiling(finding: Finding) -> Finding:
    if COMPILE not in finding.remedies:
        return finding
    left = tuple(one for one in finding.remedies if one != COMPILE)
    return finding._replace(remedies=left, remedy=finding.remedy if left else COMPILED)


def _without(finding: Finding, variants: Sequence[str]) -> Finding:
    """Without the remedies that the run had, and those that do not go with them."""
    groups = taken(variants)
    left = tuple(one for one in finding.remedies if group_of(one) not in groups)
    if left == tuple(finding.remedies):
        return finding
    if left or finding.by_hand is not None:
        return finding._replace(remedies=left, remedy=finding.remedy if left else finding.by_hand)
    had = f"{finding.meaning}; it has {' and '.join(map(title_of, variants))} already"
    return finding._replace(remedies=(), remedy=None, meaning=had)


def find_all(facts: Facts) -> list[Finding]:
    """What could win most first."""
    found = [finding for rule in RULES if (finding := rule(facts)) is not None]
    if facts.variants:
        found = [_without(one, facts.variants) for one in found]
    if facts.compiled:
        found = [_without_compiling(one) for one in found]
    return sorted(found, key=lambda one: (-one.gain_high, one.rule))
