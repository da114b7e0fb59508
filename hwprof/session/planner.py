"""From what the user asks for and what works on this machine to the passes of a run. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from hwprof.collector.contract import OwnPass
from hwprof.collector.declaration import Place
from hwprof.collector.registry import Surveyed
from hwprof.errors import UsageError
from hwprof.run.manifest import CollectorRecord
from hwprof.run.passes import MEASURE, SHARED_PASSES, TRACE
from hwprof.session.counters import Counting, choose_counters, has_own_passes, is_counter
from hwprof.session.plan import IDLE_S, CollectorPlan, PassPlan
from hwprof.unavailable import Unavailable

ITERATIONS: Final = 20
"""Of the measure pass, unless the user says how many."""

PRECISION: Final = 0.02
"""So well layers are to be known, unless the user says how well, how long or how many times: the measure pass goes on
for up to ``ENOUGH_S`` where they are not, and can be."""

ENOUGH_S: Final = {MEASURE: 20.0, TRACE: 10.0}
"""For so long a pass iterates, unless the user says how many times: of a large model, or on a slow machine, fewer
iterations tell as much."""

TRACE_ITERATIONS: Final = 5
"""The trace pass shows where time goes; more iterations than these would only make the trace larger."""

TRACE_CALLS: Final = 20_000
"""Of leaf layers: with their operators they are up to a million slices, and what a viewer shows at once."""


def plan_passes(
    surveyed: Sequence[Surveyed],
    passes: Sequence[str],
    *,
    iterations: int | None,
    warmup: int,
    time_s: float | None = None,
    precision: float | None = None,
    off: Collection[str] = (),
    named: Collection[str] = (),
    asked: Collection[str] = (),
    counting: Counting | None = None,
    options: Mapping[str, dict[str, Any]] | None = None,
    passes_of: Mapping[str, Collection[str]] | None = None,
    wait_quiet_s: float = 0.0,
) -> list[PassPlan]:
    """One plan a pass, in the given order, then those that a counter needs for itself. ``off`` names collectors that
    the user does not want, ``named`` those that the user listed, ``asked`` those that options ask for. ``options`` by
    collector, and ``passes_of``, where one is to run in others than its own. ``iterations``: None for ``ITERATIONS``,
    fewer or more, as ``ENOUGH_S`` and ``PRECISION`` have it. ``time_s``: of the measure pass, in the place of its
    iterations; ``precision``: of that time, or of ``ENOUGH_S``, only as much as it takes to know layers so well.
    ``wait_quiet_s``: how long each pass waits for a quiet machine at most; not those that are far slower than what they
    measure, and whose times nobody reads.

    Raises ``UsageError`` for a pass that is not known or named twice, for a counter or an event that nobody knows, and
    ``HwprofError`` where a counter that was asked for by name, or a collector with options, does not work.
    """
    for name in passes:
        if name not in SHARED_PASSES:
            raise _no_pass(name, surveyed)
    if len(set(passes)) != len(passes):
        raise UsageError("--passes names a pass twice", "name each once; --iterations says how much a pass measures")
    counting, further = _options_by_collector(surveyed, counting or Counting(), options or {})
    counters = choose_counters(surveyed, off, named, counting)
    if MEASURE not in passes:
        counters = counters.without_unasked()
    taking_part = [found for found in surveyed if not is_counter(found) or found.name in counters.options]
    _check(further, surveyed, off)
    where = _Where(passes_of or {}, passes, {*named, *asked})
    all_options = {**counters.options, **further}
    if time_s is not None or precision is not None:
        _check_time("--time" if time_s is not None else "--precision", passes, iterations, warmup)
        time_s = ENOUGH_S[MEASURE] if time_s is None else time_s
    enough_s, well_known = (ENOUGH_S, PRECISION) if iterations is None else ({}, None)
    iterations = ITERATIONS if iterations is None else iterations
    shared = [
        _plan(name, taking_part, where, iterations, warmup, off, all_options, enough_s.get(name)) for name in passes
    ]
    own = [
        found
        for found in taking_part
        if has_own_passes(found) and (found.name in counters.options or where.runs_alone(found))
    ]
    if shared:
        missing = tuple(_unavailable(found) for found in own if not found.availability.ok)
        shared[0] = msgspec.structs.replace(shared[0], left_out=shared[0].left_out + missing)
    if well_known is not None and warmup:
        over_time = {"time_s": time_s, "precision": precision if time_s is not None else well_known}
        shared = [msgspec.structs.replace(one, **over_time) if one.name == MEASURE else one for one in shared]
    plans = compare_outputs(
        shared
        + [
            plan
            for found in own
            for plan in _own_plans(
                found, all_options.get(found.name, {}), iterations, warmup, asked=found.name not in counters.unasked
            )
        ]
    )
    waiting = [0.0 if plan.slow else wait_quiet_s for plan in plans]
    return [msgspec.structs.replace(plan, wait_quiet_s=s) for plan, s in zip(plans, waiting, strict=True)]


def _check_time(option: str, passes: Sequence[str], iterations: int | None, warmup: int) -> None:
    """Raises ``UsageError`` where the measure pass cannot go on for some time, as the option wants it."""
    if iterations is not None or MEASURE not in passes:
        why = "--iterations says how many" if iterations is not None else f"--passes has no {MEASURE}"
        raise UsageError(f"{option} says how long the measure pass iterates, and {why}", "leave one of them out")
    if not warmup:
        raise UsageError(f"{option} needs a warm-up, which tells how many iterations fit", "--warmup 1")


def compare_outputs(plans: Sequence[PassPlan]) -> list[PassPlan]:
    """What comes out is kept of the iterations of passes that instrument the very code whose times another took, and of
    as many of that one's."""
    kept: dict[str, int] = {}
    for plan in plans:
        if plan.times_from is None or plan.instruction_set is not None:
            continue
        for name in (plan.name, plan.times_from):
            kept[name] = max(kept.get(name, 0), plan.warmup + plan.iterations)
    return [msgspec.structs.replace(plan, outputs=kept.get(plan.name, 0)) for plan in plans]


def _no_pass(name: str, surveyed: Sequence[Surveyed]) -> UsageError:
    if any(found.name == name and has_own_passes(found) for found in surveyed):
        return UsageError(
            f"{name} is a pass of the counter {name}, which comes after those of --passes",
            f"--counters {name} to have it, --no-{name} to leave it out",
        )
    return UsageError(f"no pass is called {name!r}", f"one of {', '.join(SHARED_PASSES)}")


def _options_by_collector(
    surveyed: Sequence[Surveyed], counting: Counting, options: Mapping[str, dict[str, Any]]
) -> tuple[Counting, dict[str, dict[str, Any]]]:
    """The options of counters, as a part of what the user wants counted, and those of all others."""
    counters = {found.name for found in surveyed if is_counter(found)}
    theirs = {name: given for name, given in options.items() if name in counters}
    others = {name: given for name, given in options.items() if name not in counters}
    return replace(counting, further={**counting.further, **theirs}), others


class _Where:
    """In which passes collectors run: where they say, or where the user wants them."""

    def __init__(
        self, passes_of: Mapping[str, Collection[str]], passes: Collection[str], wanted: Collection[str]
    ) -> None:
        """``wanted``: those on demand that shall run. Raises ``UsageError`` for a pass that the run does not have."""
        self._passes_of = passes_of
        self._wanted = wanted
        for collector, wanted in passes_of.items():
            for name in wanted:
                if name not in passes:
                    raise UsageError(f"{collector} cannot run in pass {name}: --passes does not name it")

    def runs_alone(self, found: Surveyed) -> bool:
        """Whether one on demand, which is no counter, has passes of its own."""
        return not is_counter(found) and found.declaration.on_demand and found.name in self._wanted

    def runs(self, found: Surveyed, name: str) -> bool:
        """Whether it runs in that pass; a broken one says nothing, and is missed in all."""
        if found.declaration.on_demand and found.name not in self._wanted:
            return False
        if found.collector is None:
            return True
        return name in self._passes_of.get(found.name, found.declaration.passes)


def _check(options: Mapping[str, dict[str, Any]], surveyed: Sequence[Surveyed], off: Collection[str]) -> None:
    """Refuses options that nobody would listen to, or whom they are for would refuse."""
    for name, given in options.items():
        found = next((one for one in surveyed if one.name == name), None)
        if found is None or name in off:
            flags = ", ".join(f"--{option.replace('_', '-')}" for option in given)
            raise UsageError(f"{flags}: the collector {name} does not run")
        if not found.availability.ok:
            raise found.not_here()
        if found.collector is not None:
            found.collector.check_options(given)


def _own_plans(
    found: Surveyed, options: dict[str, Any], iterations: int, warmup: int, *, asked: bool
) -> list[PassPlan]:
    """The passes of a collector that needs its own; none where it does not work."""
    if found.collector is None or not found.availability.ok:
        return []
    own_passes = found.collector.own_passes(options)
    return [_own_plan(own, found, iterations, warmup, options, asked=asked) for own in own_passes]


def _plan(
    name: str,
    surveyed: Sequence[Surveyed],
    where: _Where,
    iterations: int,
    warmup: int,
    off: Collection[str],
    options: Mapping[str, dict[str, Any]],
    enough_s: float | None,
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
            left_out.append(
                CollectorRecord(name=found.name, state="off", reason="switched off", role=found.declaration.role)
            )
        elif found.collector is None or not found.availability.ok:
            left_out.append(_unavailable(found))
        else:
            places = in_process if found.declaration.place is Place.IN_PROCESS else external
            places.append(_planned(found, options.get(found.name, {})))
            environment |= found.collector.worker_environment()
            if found.collector.holds_counters():
                holder = found.name
            if found.declaration.wants_idle:
                idle_s = IDLE_S
    if holder is not None:
        in_process = [_with_holder(planned, holder) if planned.name in counting else planned for planned in in_process]
    return PassPlan(
        name=name,
        iterations=iterations if name == MEASURE else min(iterations, TRACE_ITERATIONS),
        warmup=warmup,
        in_process=tuple(in_process),
        external=tuple(external),
        enough_s=enough_s,
        most_calls=TRACE_CALLS if name == TRACE else None,
        idle_s=idle_s,
        alternate=name == MEASURE,
        bare_too=name == MEASURE,
        left_out=tuple(left_out),
        environment=environment,
    )


def _planned(found: Surveyed, given: Mapping[str, Any]) -> CollectorPlan:
    options = {**found.declaration.defaults(), **given}
    return CollectorPlan(found.name, options, found.declaration.role, found.availability.tools)


def _with_holder(planned: CollectorPlan, holder: str) -> CollectorPlan:
    return msgspec.structs.replace(planned, options={**planned.options, "counters_held_by": holder})


def _unavailable(found: Surveyed) -> CollectorRecord:
    why = found.availability.unavailable or Unavailable("no reason given")
    return CollectorRecord(
        name=found.name, state="unavailable", reason=why.reason, remedy=why.remedy, role=found.declaration.role
    )


def _own_plan(
    own: OwnPass, found: Surveyed, iterations: int, warmup: int, options: dict[str, Any], *, asked: bool
) -> PassPlan:
    """A pass for one collector, or its companion."""
    collectors = (_planned(found, options),) if own.collecting else ()
    place = found.declaration.place
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
        timed=own.times_from is None,
        may_fail=True,
        asked=asked,
        slow=own.slow,
        startup_s=own.startup_s,
        limit_s=own.limit_s,
        silence_s=own.silence_s,
        limit_option=own.limit_option,
        slowdown=own.slowdown,
        call_s=own.call_s,
    )
