"""The calling thread waits for its team: imbalance, or layers too small for so many threads."""

from __future__ import annotations

from typing import Final

from hwprof.analysis.findings.facts import Facts, Finding, Share, named, percent

LEAST: Final = 0.1

MUCH: Final = 0.35
"""Fewer threads may be faster then."""


def find(facts: Facts) -> Finding | None:
    """Where waiting takes a share worth naming, of a workload with several threads. What it waits while others had a
    processor of the team's is no cause of its own, nor is a team that is larger than the processors
    (``oversubscription``)."""
    waiting = facts.part("waiting")
    share = Share(*(max(0.0, one - facts.team_preempted / facts.left) for one in waiting))
    if share.low < LEAST or facts.threads < 2 or facts.threads > facts.processors:
        return None
    layers = facts.most_in("waiting")
    fewer: tuple[str, ...] = ()
    remedy = f"a larger batch{'' if facts.compiled else ', or torch.compile(model)'}: more work for each operator"
    if share.low >= MUCH:
        number = max(1, facts.threads // 2)
        remedy, fewer = f"{facts.with_threads(number)}, and compare", (f"threads={number}",)
    return Finding(
        rule="team_waits",
        title="the calling thread waits for its team",
        evidence=f"{percent(waiting)} {facts.of_time}{named(layers)};"
        f" {facts.threads} threads, {facts.processors} processors",
        meaning="threads wait for one another at the end of each operator: uneven parts, or too little work for each",
        remedy=remedy,
        gain_low=0.0,
        gain_high=share.high,
        layers=layers,
        remedies=(*fewer, "active_wait", "compile"),
    )
