"""More threads than processors: they take turns, and a barrier waits for the one whose turn is last."""

from __future__ import annotations

from typing import Final

from hwprof.analysis.findings.facts import NOTHING, Facts, Finding, Share, percent

LEAST: Final = 0.05
"""Of the time that the threads would run: for so long they have no processor, whoever else is on the machine."""

BEYOND: Final = 0.25
"""Threads at a time beyond the processors. Others on the machine cannot bring it about: they make threads wait that are
ready, but no more of them ready than the process has."""

WAITS: Final = 0.2
"""Of the time that the calling thread waits, where the team is larger than the processors: its barriers last as long as
the turns of those that share one, though most of them sleep at a time."""

WORKS: Final = 0.25
"""Threads at a time beside the team, from which on they count as a pool: helpers of a millisecond are none."""


def find(facts: Facts) -> Finding | None:
    """Where threads of the process were in one another's way: a team too large, or several pools at once."""
    too_many = facts.threads > facts.processors
    crowded = facts.ready is not None and facts.ready >= facts.processors + BEYOND
    if facts.ready is None or not (crowded or (too_many and facts.part("waiting").low >= WAITS)):
        return None
    waiting, preempted = (facts.parts.get(part, NOTHING) for part in ("waiting", "preempted"))
    share = Share(*(min(1.0, one + other) for one, other in zip(waiting, preempted, strict=True)))
    others = {name: number for name, number in facts.other_threads.items() if number >= WORKS}
    lost = 1 - facts.processors / facts.ready if crowded else 0.0
    if max(lost, share.high) < LEAST:
        return None
    beside = f"; beside the team: {', '.join(f'{name} ({n:.1f})' for name, n in others.items())}" if others else ""
    team = f"{facts.threads} threads, " if too_many else ""
    return Finding(
        rule="oversubscription",
        title="more threads than processors" if too_many else "several pools of threads run at once",
        evidence=(
            f"{team}{facts.processors} processors, {facts.ready:.1f} threads ran or were ready at a time; the calling"
            f" thread waits {percent(share)} of the time{beside}"
        ),
        meaning="threads of the process take turns on a processor; an operator ends when the last of them had its turn",
        remedy=facts.with_threads(facts.processors) if too_many else _fewer(facts, len(others)),
        gain_low=0.0,
        gain_high=min(1.0, max(share.high, lost)),
        remedies=(f"threads={facts.processors}",) if too_many else (),
    )


def _fewer(facts: Facts, pools: int) -> str:
    """So that the pools together are no more than the processors."""
    each = max(1, facts.processors // (1 + max(1, pools)))
    return f"{facts.with_threads(each)}, torch.set_num_interop_threads(1), no thread pool around the model"
