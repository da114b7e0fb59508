"""Time in which the thread that calls a layer waits for something that is no thread of its team, nor is known to be
another one at work."""

from __future__ import annotations

from typing import Final

from hwprof.analysis.findings.facts import Facts, Finding, named, percent

LEAST: Final = 0.1


def find(facts: Facts) -> Finding | None:
    """Where it takes a share worth naming."""
    share = facts.part("blocked")
    if share.low < LEAST:
        return None
    layers = facts.most_in("blocked")
    return Finding(
        rule="blocked",
        title="the calling thread sleeps, or waits for something else",
        evidence=f"{percent(share)} {facts.of_time}{named(layers)}",
        meaning="it does nothing for the inference meanwhile (input, output, locks, queues, sleeps, other threads);"
        " for what it waits: hwprof report --layer, --python",
        remedy="do before or beside the inference what it waits for",
        gain_low=0.0,
        gain_high=share.high,
        layers=layers,
    )
