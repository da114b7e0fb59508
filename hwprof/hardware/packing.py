"""Events in sets that fit a processor's counters, so that the kernel never has to multiplex.

An event needs general counters: usually any one of them, sometimes two, sometimes one of a few; or none, where it has a
counter of its own. A metric's events (a bundle) are counted together, since counts of different iterations should not
be divided by each other. Cycles and instructions are in every set that has room, since everything is compared with
them. On hybrid processors each kind of core has counters of its own: a set has a part for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hwprof.hardware.catalogue import Processor
from hwprof.hardware.countable import Countable

UNKNOWN_PROCESSOR: Final = 4
"""General counters of a processor that the catalogue does not know: what Intel with hyper-threading has for a thread,
the scarcest in common use."""

COMPANIONS: Final = ("cycles", "instructions")
"""What is counted in every set where there is room."""


@dataclass(frozen=True)
class Budget:
    """What one PMU has for one thread: ``general`` counters that any event can be on. ``taken``: the events whose own
    counter somebody else has, so that they need a general one."""

    general: int
    taken: frozenset[str] = frozenset()

    @classmethod
    def of(cls, processor: Processor | None, *, smt: bool) -> Budget:
        """Of a processor in the catalogue, or of one that it does not know. ``smt``: a core runs several threads."""
        if processor is None:
            return cls(UNKNOWN_PROCESSOR)
        if smt or processor.general_counters_without_smt is None:
            return cls(processor.general_counters)
        return cls(processor.general_counters_without_smt)

    def holds(self, events: Iterable[Countable]) -> bool:
        """Whether these events can all have their counters at the same time."""
        demanding, plain = [], 0
        for event, needed in _needs(events, self.taken):
            if needed > 1 or (needed and event.event.only):
                demanding.append(self._places(event, needed))
            else:
                plain += needed
        # The counters that the demanding events may take together, as bit masks; plain ones take what is left.
        taken = {0}
        for places in demanding:
            taken = {mask | place for mask in taken for place in places if not mask & place}
        return bool(taken) and plain <= self.general - next(iter(taken)).bit_count()

    def used(self, events: Iterable[Countable]) -> int:
        """How many general counters they take."""
        return sum(needed for _, needed in _needs(events, self.taken))

    def _places(self, event: Countable, needed: int) -> list[int]:
        """The sets of counters that it can be on. One that needs two takes an even one and the next."""
        allowed = event.event.only or range(self.general)
        starts = [first for first in allowed if first % needed == 0 and first + needed <= self.general]
        return [((1 << needed) - 1) << first for first in starts]


@dataclass(frozen=True)
class Part:
    """What is counted together as one group of counters; the first event leads. ``pmu`` None: software events only."""

    pmu: str | None
    events: tuple[Countable, ...]


@dataclass(frozen=True)
class EventSet:
    """What one iteration counts: a group for each kind of core that has events."""

    parts: tuple[Part, ...]

    @property
    def events(self) -> tuple[Countable, ...]:
        """All events in the order of the parts."""
        return tuple(event for part in self.parts for event in part.events)

    @property
    def names(self) -> tuple[str, ...]:
        """The events' names, in the same order."""
        return tuple(event.name for event in self.events)


@dataclass(frozen=True)
class Packing:
    """The sets; ``torn``: the bundles that no set can hold; ``oversized``: events that need more counters than there
    are, and are in no set."""

    sets: tuple[EventSet, ...]
    torn: tuple[tuple[str, ...], ...] = ()
    oversized: tuple[Countable, ...] = ()


def pack(
    events: Sequence[Countable], bundles: Iterable[Sequence[str]], budgets: Mapping[str | None, Budget]
) -> Packing:
    """The events in few sets, each of which fits ``budgets`` (by PMU; one that is not in it is an unknown processor's).

    ``bundles``: names that must be in one set together, most wanted first; those of the first bundles come in the first
    sets. Software events need no counters and are in every set.
    """
    packer = _Packer(events, budgets)
    hardware = {event.name: event for event in events if event.kind == "hardware"}
    wanted = [tuple(dict.fromkeys(name for name in bundle if name in hardware)) for bundle in bundles]
    bundled = {name for bundle in wanted for name in bundle}
    wanted += [(name,) for name in hardware if name not in bundled]
    pieces, torn, oversized = [], [], []
    for bundle in dict.fromkeys(filter(None, wanted)):
        whole = packer.with_leaders([hardware[name] for name in bundle])
        if packer.fits(whole):
            pieces.append(whole)
            continue
        possible = [event for event in whole if packer.fits(packer.with_leaders([event]))]
        oversized += [event for event in whole if event not in possible]
        parts = packer.torn(possible)
        pieces += parts
        if len(parts) > 1:
            torn.append(bundle)
    sets = packer.place(pieces)
    if not sets and any(event.kind == "software" for event in events):
        sets = [[]]
    return Packing(tuple(packer.event_set(content) for content in sets), tuple(torn), tuple(dict.fromkeys(oversized)))


class _Packer:
    """Contents of sets are lists of events, in the order of ``events``."""

    def __init__(self, events: Sequence[Countable], budgets: Mapping[str | None, Budget]) -> None:
        self._budgets = budgets
        self._software = tuple(event for event in events if event.kind == "software")
        self._order = {event: number for number, event in enumerate(events)}
        self._leaders = {(event.pmu, event.event.name): event for event in reversed(events)}
        self._companions = [
            event
            for name in COMPANIONS
            for event in events
            if event.event.name == name and not (event.exclude_user or event.exclude_kernel)
        ]

    def with_leaders(self, events: Iterable[Countable]) -> list[Countable]:
        """The events and those that must lead them, as far as they are to be counted at all."""
        found = list(events)
        leaders = (self._leaders.get((event.pmu, event.event.leader or "")) for event in found)
        return list(dict.fromkeys([*found, *(leader for leader in leaders if leader is not None)]))

    def fits(self, events: Iterable[Countable]) -> bool:
        """Whether one set can hold them: counters suffice, and no PMU's group has two leaders."""
        for pmu, part in _by_pmu(events).items():
            leaders = {event.event.leader for event in part if event.event.leader is not None}
            if len(leaders) > 1 or not self._budget(pmu).holds(part):
                return False
        return True

    def torn(self, bundle: Sequence[Countable]) -> list[list[Countable]]:
        """A bundle that no set can hold in pieces that sets can, in its order."""
        pieces: list[list[Countable]] = []
        for event in bundle:
            longer = self.with_leaders([*pieces[-1], event]) if pieces else []
            if pieces and self.fits(longer):
                pieces[-1] = longer
            else:
                pieces.append(self.with_leaders([event]))
        return pieces

    def place(self, pieces: Sequence[list[Countable]]) -> list[list[Countable]]:
        """Sets that hold every piece whole: the largest first, each where it adds least. The first pieces' sets come
        first."""
        sets: list[list[Countable]] = []
        for piece in sorted(pieces, key=lambda piece: (self._used(piece), len(piece)), reverse=True):
            united = [(content, list(dict.fromkeys([*content, *piece]))) for content in sets]
            possible = [(content, union) for content, union in united if self.fits(union)]
            if possible:
                content, union = min(possible, key=lambda pair: self._used(pair[1]) - self._used(pair[0]))
                content[:] = union
            else:
                sets.append(self._with_companions(piece))
        return self._needed(sets, pieces)

    def event_set(self, content: Iterable[Countable]) -> EventSet:
        """The set in parts, each with its leader first. Software events are in the first part; where cores differ, in
        one of their own, since a group waits for the kind of core of its leader."""
        parts = [Part(pmu, _led(sorted(part, key=self._order.__getitem__))) for pmu, part in _by_pmu(content).items()]
        parts.sort(key=lambda part: list(self._budgets).index(part.pmu) if part.pmu in self._budgets else -1)
        if not self._software:
            return EventSet(tuple(parts))
        if len(self._budgets) > 1 or not parts:
            return EventSet((Part(None, self._software), *parts))
        first, *others = parts
        return EventSet((Part(first.pmu, first.events + self._software), *others))

    def _with_companions(self, piece: list[Countable]) -> list[Countable]:
        content = list(piece)
        for companion in self._companions:
            if companion not in content and self.fits([*content, companion]):
                content.append(companion)
        return content

    def _needed(self, sets: list[list[Countable]], pieces: Sequence[list[Countable]]) -> list[list[Countable]]:
        """Without the sets all of whose pieces are in others too, in order of the first piece that each holds."""
        homes = [[number for number, content in enumerate(sets) if set(piece) <= set(content)] for piece in pieces]
        kept = set(range(len(sets)))
        for number in reversed(range(len(sets))):
            if all(set(home) & (kept - {number}) for home in homes):
                kept.remove(number)
        first = {number: next(index for index, home in enumerate(homes) if number in home) for number in kept}
        return [sets[number] for number in sorted(kept, key=lambda number: (first[number], number))]

    def _used(self, events: Iterable[Countable]) -> int:
        return sum(self._budget(pmu).used(part) for pmu, part in _by_pmu(events).items())

    def _budget(self, pmu: str | None) -> Budget:
        return self._budgets.get(pmu, Budget(UNKNOWN_PROCESSOR))


def _by_pmu(events: Iterable[Countable]) -> dict[str | None, list[Countable]]:
    parts: dict[str | None, list[Countable]] = {}
    for event in events:
        parts.setdefault(event.pmu, []).append(event)
    return parts


def _needs(events: Iterable[Countable], taken: Iterable[str]) -> list[tuple[Countable, int]]:
    """How many general counters each of one PMU's events takes. A counter of its own serves an event once: a second one
    of the same name (``cycles:u``) needs a general one, and so does one whose own counter is ``taken``."""
    served = set(taken)
    needs = []
    for event in events:
        needed = 0 if event.kind == "software" else event.event.counters
        if event.fixed and event.event.name not in served:
            served.add(event.event.name)
            needed = 0
        needs.append((event, needed))
    return needs


def _led(part: Sequence[Countable]) -> tuple[Countable, ...]:
    """One PMU's events with the leader that some of them ask for at first, those that ask for it next."""
    leader = next((event.event.leader for event in part if event.event.leader is not None), None)
    return tuple(sorted(part, key=lambda event: (event.event.name != leader, event.event.leader is None)))
