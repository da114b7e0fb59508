"""From what the user asks for and what works on this machine to the passes of a run. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from hwprof.errors import UsageError
from hwprof.run.manifest import CollectorRecord
from hwprof.session.collector import Place
from hwprof.session.plan import IDLE_S, KNOWN_PASSES, MEASURE, CollectorPlan, PassPlan
from hwprof.session.registry import Surveyed

TRACE_ITERATIONS: Final = 5
"""The trace pass shows where time goes; more iterations than these would only make the trace larger."""


def plan_passes(
    surveyed: Sequence[Surveyed], passes: Sequence[str], *, iterations: int, warmup: int, off: Collection[str] = ()
) -> list[PassPlan]:
    """One plan a pass, in the given order. ``off`` names collectors that the user does not want.

    Raises ``UsageError`` for a pass that is not known or named twice.
    """
    for name in passes:
        if name not in KNOWN_PASSES:
            raise UsageError(f"no pass is called {name!r}", f"there are {', '.join(KNOWN_PASSES)}")
    if len(set(passes)) != len(passes):
        raise UsageError("--passes names a pass twice")
    return [_plan(name, surveyed, iterations, warmup, off) for name in passes]


def _plan(name: str, surveyed: Sequence[Surveyed], iterations: int, warmup: int, off: Collection[str]) -> PassPlan:
    inside: list[CollectorPlan] = []
    beside: list[CollectorPlan] = []
    left_out: list[CollectorRecord] = []
    idle_s = 0.0
    for found in surveyed:
        if found.collector is not None and name not in found.collector.passes:
            continue
        if found.name in off:
            left_out.append(CollectorRecord(name=found.name, state="off", reason="switched off"))
        elif found.collector is None or not found.availability.ok:
            availability = found.availability
            left_out.append(
                CollectorRecord(
                    name=found.name, state="unavailable", reason=availability.reason, remedy=availability.remedy
                )
            )
        else:
            places = inside if found.collector.place is Place.INSIDE else beside
            places.append(CollectorPlan(found.name))
            if found.collector.wants_idle:
                idle_s = IDLE_S
    return PassPlan(
        name=name,
        iterations=iterations if name == MEASURE else min(iterations, TRACE_ITERATIONS),
        warmup=warmup,
        inside=tuple(inside),
        beside=tuple(beside),
        idle_s=idle_s,
        alternate=name == MEASURE,
        left_out=tuple(left_out),
    )
