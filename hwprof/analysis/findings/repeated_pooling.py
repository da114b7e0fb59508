"""Max poolings of one input with several sizes: each larger one begins again where a smaller one has been."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from hwprof.analysis.findings.facts import Facts, Finding, Pooling, named

LEAST: Final = 0.01
"""Of the time, that a chain would save."""

SURE: Final = 0.7
"""Of what a chain saves by the times of the poolings as they are: later ones of a chain read numbers that were just
written, in other orders."""


class _Chain(NamedTuple):
    layers: Sequence[str]
    sizes: Sequence[int]
    steps: Sequence[int]
    now: float
    chained: float

    @property
    def saved(self) -> float:
        return self.now - self.chained


def find(facts: Facts) -> Finding | None:
    """The group of poolings that a chain would save most of: pooling by a, then by b, is pooling by a + b - 1."""
    times = {one.path: one.of_whole for one in facts.layers}
    chains = [chain for group in facts.poolings if (chain := _chain(group, times)) is not None]
    if not chains:
        return None
    best = max(chains, key=lambda one: one.saved)
    if best.saved < LEAST:
        return None
    return Finding(
        rule="repeated_pooling",
        title=f"poolings by {', '.join(map(str, best.sizes))} of the same input compare the same numbers again",
        evidence=f"{best.now:.1%} of the time{named(best.layers)}; as a chain about {best.chained:.1%}",
        meaning=f"the largest of a window by {best.sizes[-1]} is the largest of those by {best.sizes[-2]} around it",
        remedy=f"a chain: each pooling on the output of the one before, by {', '.join(map(str, best.steps))} (as SPPF)",
        gain_low=min(1.0, SURE * best.saved),
        gain_high=min(1.0, max(best.saved, best.now - times[best.layers[0]])),
        layers=best.layers,
    )


def _chain(group: Sequence[Pooling], times: Mapping[str, float]) -> _Chain | None:
    """None where a pooling's time is not known, or their sizes differ by odd numbers: no padding would be even."""
    ordered = sorted(group, key=lambda one: one.size)
    sizes = [one.size for one in ordered]
    if len(set(sizes)) < 2 or any(one.path not in times for one in ordered):
        return None
    steps = [sizes[0], *(after - before + 1 for before, after in pairwise(sizes))]
    if any(step % 2 == 0 for step in steps):
        return None
    taken = {one.size: times[one.path] for one in reversed(ordered)}
    # a step takes no longer than the smallest of the poolings that is as large
    chained = sum(min(taken[size] for size in sizes if size >= step) for step in steps)
    return _Chain([one.path for one in ordered], sizes, steps, sum(times[one.path] for one in ordered), chained)
