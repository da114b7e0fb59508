"""Who counts what in a run: from what the user asks for and what works on this machine. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hwprof.collector.registry import Surveyed
from hwprof.errors import UsageError
from hwprof.run.roles import Role

AUTO: Final = "auto"


@dataclass(frozen=True)
class Counting:
    """What the user wants counted, and by whom."""

    counters: Sequence[str] = (AUTO,)  # collectors by name
    events: Sequence[str] | None = None  # None: each counter's defaults
    user_only: bool = False  # hardware events leave the kernel's code out
    further: Mapping[str, dict[str, Any]] = field(default_factory=dict)  # a counter's own options, by its name


@dataclass(frozen=True)
class Counters:
    """``options``: the counting collectors that take part, each with its options. ``unasked``: those of them that
    nobody named, so that a run without them is no failure."""

    options: Mapping[str, dict[str, Any]]
    unasked: Collection[str] = ()

    def without_unasked(self) -> Counters:
        """Only those that the user named, and the usual ones."""
        return Counters({name: options for name, options in self.options.items() if name not in self.unasked})


def is_counter(found: Surveyed) -> bool:
    """Whether it is a source of counts."""
    return found.declaration.role is Role.COUNTER


def has_own_passes(found: Surveyed) -> bool:
    """Whether it runs in passes of its own only."""
    return found.declaration.own_passes


def choose_counters(
    surveyed: Sequence[Surveyed], off: Collection[str], named: Collection[str], counting: Counting
) -> Counters:
    """Raises ``UsageError`` for a counter or an event that nobody knows, and ``HwprofError`` where a counter that was
    asked for by name does not work."""
    candidates = {found.name: found for found in surveyed if is_counter(found)}
    asked = _asked(candidates, off, named, counting)
    sharing = [name for name in asked if name in candidates and not has_own_passes(candidates[name])]
    if AUTO in counting.counters or not sharing:
        usual = [name for name in candidates if name in named and not has_own_passes(candidates[name])]
        sharing += usual or [name for name, found in candidates.items() if found.declaration.preferred]
    alone = [name for name in asked if name not in sharing]
    unasked: list[str] = []
    if AUTO in counting.counters and _lacking(candidates, sharing, off):
        fallbacks = [name for name, found in candidates.items() if found.declaration.fallback and name not in off]
        unasked = [name for name in fallbacks if name not in alone]
        alone = [*unasked, *alone]
    sharing = list(dict.fromkeys(sharing))
    options = _options([*sharing, *alone], counting)
    if len(sharing) == 1:
        options[sharing[0]]["alone"] = True
    if counting.events is not None:
        for name, events in _shares(_listening(candidates, sharing, off), counting.events).items():
            options[name]["events"] = events
    return Counters(options, unasked)


def _asked(
    candidates: Mapping[str, Surveyed], off: Collection[str], named: Collection[str], counting: Counting
) -> list[str]:
    """The counters that the user named, by --counters or, where they have passes of their own, by --collectors."""
    asked = [name for name in dict.fromkeys(counting.counters) if name != AUTO]
    for name in asked:
        if named and name not in named:
            raise UsageError(f"--counters names {name}, which --collectors leaves out")
    asked += [name for name in candidates if name in named and name not in asked and has_own_passes(candidates[name])]
    for name in asked:
        _require(name, candidates, off)
    return asked


def _require(name: str, candidates: Mapping[str, Surveyed], off: Collection[str]) -> None:
    """Refuses a counter asked for by name that cannot take part."""
    found = candidates.get(name)
    if found is None:
        raise UsageError(f"no counter is called {name!r}", f"one of {', '.join([AUTO, *candidates])}")
    if name in off:
        raise UsageError(f"--counters {name} and --no-{name} contradict each other")
    if not found.availability.ok:
        raise found.not_here()


def _lacking(candidates: Mapping[str, Surveyed], sharing: Sequence[str], off: Collection[str]) -> bool:
    """Whether those who count leave a gap on this machine that a fallback would fill. One that does not work is chosen
    all the same: the run's record says why."""
    found = [candidates[name].availability for name in sharing if name not in off]
    return not any(availability.ok and availability.lacks is None for availability in found)


def _options(names: Sequence[str], counting: Counting) -> dict[str, dict[str, Any]]:
    options: dict[str, dict[str, Any]] = {name: {"kernel": False} if counting.user_only else {} for name in names}
    for name, further in counting.further.items():
        if name not in options:
            asked = ", ".join(f"--{option.replace('_', '-')}" for option in further)
            raise UsageError(f"{asked}: {name} does not count in this run", f"--counters auto,{name}")
        options[name] |= further
    return options


def _listening(candidates: Mapping[str, Surveyed], sharing: Sequence[str], off: Collection[str]) -> dict[str, Surveyed]:
    """Those that can be told what to count."""
    found = {name: candidates[name] for name in sharing if name not in off}
    if not found:
        raise UsageError("--events: no counter in this run", "leave --events out")
    return found


def _shares(counters: Mapping[str, Surveyed], events: Sequence[str]) -> dict[str, list[str]]:
    """Who counts what: every counter all that it understands. Raises ``UsageError`` for an event that none does."""
    shares: dict[str, list[str]] = {name: [] for name in counters}
    for event in events:
        refusals = []
        for name, found in counters.items():
            try:
                if found.collector is not None:
                    found.collector.check_options({"events": [event]})
            except UsageError as refusal:
                refusals.append(refusal)
            else:
                shares[name].append(event)
        if refusals and len(refusals) == len(counters):
            raise refusals[0]
    return shares
