"""From what the user asks for and what works on this machine to the passes of a run. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from hwprof.collector.contract import Choosing, HoldingCounters, OwnPass, OwnPasses, Place, Preparing
from hwprof.collector.registry import Surveyed
from hwprof.errors import HwprofError, UsageError
from hwprof.run.manifest import CollectorRecord
from hwprof.session.counters import Counters, Counting, choose_counters, has_own_passes, is_counter
from hwprof.session.plan import IDLE_S, KNOWN_PASSES, MEASURE, CollectorPlan, PassPlan

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
    options: Mapping[str, dict[str, Any]] | None = None,
    passes_of: Mapping[str, Collection[str]] | None = None,
) -> list[PassPlan]:
    """One plan a pass, in the given order, then those that a counter needs for itself. ``off`` names collectors that
    the user does not want, ``named`` those that the user listed. Of collectors that count nothing: ``options`` by name,
    and ``passes_of``, where one is to run in others than its own.

    Raises ``UsageError`` for a pass that is not known or named twice, for a counter or an event that nobody knows, and
    ``HwprofError`` where a counter that was asked for by name, or a collector with options, does not work.
    """
    for name in passes:
        if name not in KNOWN_PASSES:
            raise UsageError(f"no pass is called {name!r}", f"one of {', '.join(KNOWN_PASSES)}")
    if len(set(passes)) != len(passes):
        raise UsageError("--passes names a pass twice")
    counters = choose_counters(surveyed, off, named, counting or Counting())
    if MEASURE not in passes:
        counters = counters.without_unasked()
    taking_part = [found for found in surveyed if not is_counter(found) or found.name in counters.options]
    further = options or {}
    _check(further, surveyed, off)
    where = _Where(passes_of or {}, passes)
    all_options = {**counters.options, **further}
    shared = [_plan(name, taking_part, where, iterations, warmup, off, all_options) for name in passes]
    own = [found for found in taking_part if found.name in counters.options and has_own_passes(found)]
    if shared:
        missing = tuple(_unavailable(found) for found in own if not found.availability.ok)
        shared[0] = msgspec.structs.replace(shared[0], left_out=shared[0].left_out + missing)
    return shared + [plan for found in own for plan in _own_plans(found, counters, iterations, warmup)]


class _Where:
    """In which passes collectors run: where they say, or where the user wants them."""

    def __init__(self, passes_of: Mapping[str, Collection[str]], passes: Collection[str]) -> None:
        """Raises ``UsageError`` for a pass that the run does not have."""
        self._passes_of = passes_of
        for collector, wanted in passes_of.items():
            for name in wanted:
                if name not in passes:
                    raise UsageError(f"{collector} cannot run in pass {name}: --passes does not name it")

    def runs(self, found: Surveyed, name: str) -> bool:
        """Whether it runs in that pass; a broken one says nothing, and is missed in all."""
        if found.collector is None:
            return True
        return name in self._passes_of.get(found.name, found.collector.passes)


def _check(options: Mapping[str, dict[str, Any]], surveyed: Sequence[Surveyed], off: Collection[str]) -> None:
    """Refuses options that nobody would listen to, or whom they are for would refuse."""
    for name, given in options.items():
        found = next((one for one in surveyed if one.name == name), None)
        if found is None or name in off:
            raise UsageError(f"--{', --'.join(given)}: the collector {name} does not run")
        if not found.availability.ok:
            raise HwprofError(f"{name} does not work here: {found.availability.reason}", found.availability.remedy)
        collector: object = found.collector
        if isinstance(collector, Choosing):
            collector.check_options(given)


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
    where: _Where,
    iterations: int,
    warmup: int,
    off: Collection[str],
    options: Mapping[str, dict[str, Any]],
) -> PassPlan:
    in_process: list[CollectorPlan] = []
    external: list[CollectorPlan] = []
    left_out: list[CollectorRecord] = []
    environment: dict[str, str] = {}
    idle_s = 0.0
    counting = {found.name for found in surveyed if is_counter(found)}
    holder: str | None = None
    for found in surveyed:
        if has_own_passes(found) or not where.runs(found, name):
            continue
        if found.name in off:
            left_out.append(CollectorRecord(name=found.name, state="off", reason="switched off"))
        elif found.collector is None or not found.availability.ok:
            left_out.append(_unavailable(found))
        else:
            places = in_process if found.collector.place is Place.IN_PROCESS else external
            places.append(CollectorPlan(found.name, options.get(found.name, {})))
            if isinstance(found.collector, Preparing):
                environment |= found.collector.worker_environment()
            if isinstance(found.collector, HoldingCounters) and found.collector.holds_counters():
                holder = found.name
            if found.collector.wants_idle:
                idle_s = IDLE_S
    if holder is not None:
        in_process = [_with_holder(planned, holder) if planned.name in counting else planned for planned in in_process]
    return PassPlan(
        name=name,
        iterations=iterations if name == MEASURE else min(iterations, TRACE_ITERATIONS),
        warmup=warmup,
        in_process=tuple(in_process),
        external=tuple(external),
        idle_s=idle_s,
        alternate=name == MEASURE,
        left_out=tuple(left_out),
        environment=environment,
    )


def _with_holder(planned: CollectorPlan, holder: str) -> CollectorPlan:
    return msgspec.structs.replace(planned, options={**planned.options, "counters_held_by": holder})


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
        in_process=collectors if place is Place.IN_PROCESS else (),
        external=collectors if place is Place.EXTERNAL else (),
        launcher=collectors if place is Place.LAUNCHER else (),
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
