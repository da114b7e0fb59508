"""A team on several NUMA nodes that would fit on one: what one node's threads wrote, others read from afar."""

from __future__ import annotations

from typing import Final

from hwprof.analysis.findings.facts import Facts, Finding

LEAST: Final = 0.1
"""Of the team's time, away from the node that has most of it."""

REMOTE: Final = 0.5
"""Of that time, at most: memory of another node takes 1.5 to 2 times as long (Intel MLC's figures of two sockets)."""


def find(facts: Facts) -> Finding | None:
    """Where its threads ran on several nodes, and one has cores enough for all of them."""
    away = sum(facts.nodes[1:])
    if away < LEAST or facts.node_cores is None or facts.threads > facts.node_cores:
        return None
    return Finding(
        rule="numa_placement",
        title=f"the team is spread over {sum(one >= LEAST / 2 for one in facts.nodes)} NUMA nodes",
        evidence=f"{away:.0%} of its time away from the node with most of it; {facts.threads} threads,"
        f" {facts.node_cores} cores a node",
        meaning="memory belongs to the node whose thread first wrote to it; the others read it over the link",
        remedy="numactl --cpunodebind=0 --membind=0 before the command",
        gain_low=0.0,
        gain_high=REMOTE * min(1.0, away),
        remedies=("bind_threads",),
    )
