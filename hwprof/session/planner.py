"""From what the user asks for and what works on this machine to the passes of a run. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from hwprof.errors import UsageError
from hwprof.run.manifest import CollectorRecord
from hwprof.session.collector import OwnPass, OwnPasses, Place
from hwprof.session.counters import Counters, Counting, choose_counters, has_own_passes, is_counter
from hwprof.session.plan import IDLE_S, KNOWN_PASSES, MEASURE, CollectorPlan, PassPlan
from hwprof.session.registry import Surveyed

TRACE_ITERATIONS: Final = 5
"""The trace pass shows where time goes; more iterations than these would only make the trace larger."""


def plan_passes(
    surveyed: Sequence[Surveyed],
    passes: Sequence[str],
    *,
    iterations: int,
    warmup: int,
    off: Collection[str] = (),
    named: Collection[str] = (),
    counting: Counting | None = None,
) -> list[PassPlan]:
    """One plan a pass, in the given order, then those that a counter needs for itself. ``off`` names collectors that
    the user does not want, ``named`` those that the user listed.

    Raises ``UsageError`` for a pass that is not known or named twice, for a counter or an event that nobody knows, and
    ``HwprofError`` where a counter that was asked for by name does not work.
    """
    for name in passes:
        if name not in KNOWN_PASSES:
            raise UsageError(f"no pass is called {name!r}", f"there are {', '.join(KNOWN_PASSES)}")
    if len(set(passes)) != len(passes):
        raise UsageError("--passes names a pass twice")
    counters = choose_counters(surveyed, off, named, counting or Counting())
    if MEASURE not in passes:
        counters = counters.without_unasked()
    taking_part = [found for found in surveyed if not is_counter(found) or found.name in counters.options]
    shared = [_plan(name, taking_part, iterations, warmup, off, counters.options) for name in passes]
    own = [found for found in taking_part if found.name in counters.options and has_own_passes(found)]
    if shared:
        missing = tuple(_unavailable(found) for found in own if not found.availability.ok)
        shared[0] = msgspec.structs.replace(shared[0], left_out=shared[0].left_out + missing)
    return shared + [plan for found in own for plan in _own_plans(found, counters, iterations, warmup)]


def _own_plans(found: Surveyed, counters: Counters, iterations: int, warmup: int) -> list[PassPlan]:
    """The passes of a counter that needs its own; none where it does not work."""
    collector: object = found.collector
    if not isinstance(collector, OwnPasses) or not found.availability.ok:
        return []
    options, asked = counters.options[found.name], found.name not in counters.unasked
    return [_own_plan(own, found, iterations, warmup, options, asked=asked) for own in collector.own_passes(options)]


def _plan(
    name: str,
    surveyed: Sequence[Surveyed],
    iterations: int,
    warmup: int,
    off: Collection[str],
    options: Mapping[str, dict[str, Any]],
) -> PassPlan:
    inside: list[CollectorPlan] = []
    beside: list[CollectorPlan] = []
    left_out: list[CollectorRecord] = []
    idle_s = 0.0
    for found in surveyed:
        if has_own_passes(found) or (found.collector is not None and name not in found.collector.passes):
            continue
        if found.name in off:
            left_out.append(CollectorRecord(name=found.name, state="off", reason="switched off"))
        elif found.collector is None or not found.availability.ok:
            left_out.append(_unavailable(found))
        else:
            places = inside if found.collector.place is Place.INSIDE else beside
            places.append(CollectorPlan(found.name, options.get(found.name, {})))
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


def _unavailable(found: Surveyed) -> CollectorRecord:
    availability = found.availability
    return CollectorRecord(name=found.name, state="unavailable", reason=availability.reason, remedy=availability.remedy)


def _own_plan(
    own: OwnPass, found: Surveyed, iterations: int, warmup: int, options: dict[str, Any], *, asked: bool
) -> PassPlan:
    """A pass for one collector, or its companion."""
    collectors = (CollectorPlan(found.name, options),) if own.collecting else ()
    place = found.collector.place if found.collector is not None else None
    return PassPlan(
        name=own.name,
        iterations=iterations if own.iterations is None else own.iterations,
        warmup=warmup if own.warmup is None else own.warmup,
        inside=collectors if place is Place.INSIDE else (),
        beside=collectors if place is Place.BESIDE else (),
        around=collectors if place is Place.AROUND else (),
        alternate=own.alternate,
        environment=dict(own.environment),
        threads=own.threads,
        instruction_set=own.instruction_set,
        times_from=own.times_from,
        may_fail=True,
        asked=asked,
        slow=own.slow,
        startup_s=own.startup_s,
        slowdown=own.slowdown,
        call_s=own.call_s,
    )
