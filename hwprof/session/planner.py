"""From what the user asks for and what works on this machine to the passes of a run. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hwprof.errors import HwprofError, UsageError
from hwprof.run.manifest import CollectorRecord
from hwprof.session.collector import Choosing, EdgeCounter, OwnPass, OwnPasses, Place
from hwprof.session.plan import IDLE_S, KNOWN_PASSES, MEASURE, CollectorPlan, PassPlan
from hwprof.session.registry import Surveyed

TRACE_ITERATIONS: Final = 5
"""The trace pass shows where time goes; more iterations than these would only make the trace larger."""

AUTO: Final = "auto"
PREFERRED: Final = "perf"
"""The counting collector that ``auto`` stands for."""


@dataclass(frozen=True)
class Counting:
    """What the user wants counted, and by whom."""

    counters: Sequence[str] = (AUTO,)  # collectors by name
    events: Sequence[str] | None = None  # None: each counter's defaults
    user_only: bool = False  # hardware events leave the kernel's code out
    further: Mapping[str, dict[str, Any]] = field(default_factory=dict)  # a counter's own options, by its name


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
    options = _counters(surveyed, off, named, counting or Counting())
    taking_part = [found for found in surveyed if not _counts(found) or found.name in options]
    shared = [_plan(name, taking_part, iterations, warmup, off, options) for name in passes]
    return shared + [
        _own_plan(own, found, iterations, warmup, options[found.name])
        for found in taking_part
        if found.name in options
        for own in _own_passes(found.collector, options[found.name])
    ]


def _counters(
    surveyed: Sequence[Surveyed], off: Collection[str], named: Collection[str], counting: Counting
) -> dict[str, dict[str, Any]]:
    """The counting collectors that take part, each with its options."""
    candidates = {found.name: found for found in surveyed if _counts(found)}
    asked = [name for name in dict.fromkeys(counting.counters) if name != AUTO]
    for name in asked:
        if named and name not in named:
            raise UsageError(f"--counters names {name}, which --collectors leaves out")
        _require(name, candidates, off)
    if AUTO in counting.counters:
        asked += [name for name in candidates if name in named] or [PREFERRED]
    chosen = {name: candidates[name] for name in dict.fromkeys(asked) if name in candidates}
    options: dict[str, dict[str, Any]] = {name: {"kernel": False} if counting.user_only else {} for name in chosen}
    for name, further in counting.further.items():
        if name not in options:
            raise UsageError(f"{', '.join(further)}: {name} does not count in this run", f"--counters auto,{name}")
        options[name] |= further
    together = {name: found for name, found in chosen.items() if not isinstance(found.collector, OwnPasses)}
    for name in chosen:
        if name not in together:
            _require(name, candidates, off)
    if len(together) == 1:
        options[next(iter(together))]["alone"] = True
    if counting.events is not None:
        counters = {name: found for name, found in together.items() if name not in off}
        if not together:
            raise UsageError(f"--events: {', '.join(chosen)} counts what it counts", "leave --events out")
        for name, events in _shares(counters, counting.events).items():
            options[name]["events"] = events
    return options


def _require(name: str, candidates: Mapping[str, Surveyed], off: Collection[str]) -> None:
    """Refuses a counter asked for by name that cannot take part."""
    found = candidates.get(name)
    if found is None:
        raise UsageError(f"no counter is called {name!r}", f"there are {', '.join([AUTO, *candidates])}")
    if name in off:
        raise UsageError(f"--counters {name} and --no-{name} contradict each other")
    if not found.availability.ok:
        raise HwprofError(f"{name} does not work here: {found.availability.reason}", found.availability.remedy)


def _shares(counters: Mapping[str, Surveyed], events: Sequence[str]) -> dict[str, list[str]]:
    """Who counts what: every counter all that it understands. Raises ``UsageError`` for an event that none does."""
    shares: dict[str, list[str]] = {name: [] for name in counters}
    for event in events:
        refusals = []
        for name, found in counters.items():
            try:
                _check_options(found.collector, {"events": [event]})
            except UsageError as refusal:
                refusals.append(refusal)
            else:
                shares[name].append(event)
        if refusals and len(refusals) == len(counters):
            raise refusals[0]
    return shares


def _check_options(collector: object, options: dict[str, Any]) -> None:
    if isinstance(collector, Choosing):
        collector.check_options(options)


def _own_passes(collector: object, options: dict[str, Any]) -> Sequence[OwnPass]:
    return collector.own_passes(options) if isinstance(collector, OwnPasses) else ()


def _counts(found: Surveyed) -> bool:
    """Whether it is a source of counts; one that could not even be made is taken for what it is called."""
    return isinstance(found.collector, EdgeCounter) or (found.collector is None and found.name == PREFERRED)


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


def _own_plan(own: OwnPass, found: Surveyed, iterations: int, warmup: int, options: dict[str, Any]) -> PassPlan:
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
        slow=own.slow,
        startup_s=own.startup_s,
        slowdown=own.slowdown,
        call_s=own.call_s,
    )
