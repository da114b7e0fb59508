"""Layers whose threads get uneven parts: the others wait for the one with most."""

from __future__ import annotations

from typing import Final

from hwprof.analysis.findings.facts import Facts, Finding, counted, named

LEAST: Final = 0.05
"""Of the time, that even parts would save."""

UNEVEN: Final = 0.2
"""The busiest thread's time over the mean, less 1; chance makes 0.1 of layers with some hundred samples."""


SHARED: Final = ("compute", "waiting")
"""The calling thread may be the one with most, or wait for it."""


def find(facts: Facts) -> Finding | None:
    """Where uneven parts cost a share worth naming. What one thread does alone is no part (``serial_layers``); and a
    thread that others keep from its processor leaves its part to the rest, however even parts are."""
    if facts.threads < 2:
        return None
    uneven = {
        path: value for path, value in facts.imbalance.items() if value >= UNEVEN and path not in set(facts.serial)
    }
    works = {path: sum(facts.time_of([path], part) for part in SHARED) for path in uneven}
    saved = {path: works[path] * value / (1 + value) for path, value in uneven.items()}
    share = max(0.0, sum(saved.values()) - facts.team_preempted / facts.left)
    if share < LEAST:
        return None
    number = counted(len(uneven), "layer", "layers")
    longest = sorted(saved, key=lambda path: (-saved[path], path))[:3]
    return Finding(
        rule="imbalance",
        title=f"uneven parts for the threads of {number}",
        evidence=f"the busiest thread does {1 + uneven[longest[0]]:.1f} times the mean in {longest[0]};"
        f" {share:.1%} of the time{named(longest)}",
        meaning="each thread gets the same number of elements, rows or bags, and these take unequal time",
        remedy="inputs sorted or mixed so that heavy ones lie apart; sizes that the number of threads divides",
        gain_low=0.0,
        gain_high=min(1.0, share),
        layers=longest,
    )
