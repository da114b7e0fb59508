"""From what the user asks for and what works on this machine to the passes of a run. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from hwprof.errors import HwprofError, UsageError
from hwprof.run.manifest import CollectorRecord
from hwprof.session.collector import Choosing, EdgeCounter, Place, Preparing
from hwprof.session.plan import IDLE_S, INSTRUMENTED, KNOWN_PASSES, MEASURE, TRACE, CollectorPlan, PassPlan
from hwprof.session.registry import Surveyed

MOST_ITERATIONS: Final = {TRACE: 5, INSTRUMENTED: 2}
"""The trace pass shows where time goes; more iterations than these would only make the trace larger. Followed code
executes the same every time; the second iteration shows it."""

AUTO: Final = "auto"
PREFERRED: Final = "perf"
"""The counting collector that ``auto`` stands for."""


@dataclass(frozen=True)
class Counting:
    """What the user wants counted, and by whom."""

    counters: Sequence[str] = (AUTO,)  # collectors by name
    events: Sequence[str] | None = None  # None: each counter's defaults
    user_only: bool = False  # hardware events leave the kernel's code out


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
    """One plan a pass, in the given order. ``off`` names collectors that the user does not want, ``named`` those that
    the user listed.

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
    return [_plan(name, taking_part, iterations, warmup, off, options) for name in passes]


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
    if len(chosen) == 1:
        options[next(iter(chosen))]["alone"] = True
    if counting.events is not None:
        counters = {name: found for name, found in chosen.items() if name not in off}
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


def _counts(found: Surveyed) -> bool:
    """Whether it is a source of counts that others could take the place of; one that could not even be made is taken
    for what it is called."""
    if found.collector is None:
        return found.name == PREFERRED
    return isinstance(found.collector, EdgeCounter) and MEASURE in found.collector.passes


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
    environment: dict[str, str] = {}
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
            if isinstance(found.collector, Preparing):
                environment |= found.collector.environment()
    if name == INSTRUMENTED and not inside:
        _refuse_pass(name, left_out)
    return PassPlan(
        name=name,
        iterations=min(iterations, MOST_ITERATIONS.get(name, iterations)),
        warmup=warmup,
        inside=tuple(inside),
        beside=tuple(beside),
        idle_s=idle_s,
        alternate=name == MEASURE,
        left_out=tuple(left_out),
        environment=environment,
        may_fail=name == INSTRUMENTED,
    )


def _refuse_pass(name: str, left_out: Sequence[CollectorRecord]) -> NoReturn:
    """A pass that exists for one collector is nothing without it."""
    for record in left_out:
        if record.name == name and record.state == "off":
            raise UsageError(f"--passes {name} and --no-{name} contradict each other")
        if record.name == name:
            raise HwprofError(f"the pass {name} does not work here: {record.reason}", record.remedy)
    raise UsageError(f"--passes names {name}, whose collector --collectors leaves out")
