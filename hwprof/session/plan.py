"""What a run will do: its passes, which collectors each has, and how iterations rotate. Pure; travels to the worker."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from hwprof.run.manifest import CollectorRecord, IterationRecord, Tool
from hwprof.run.notes import Note, NoteKind
from hwprof.run.passes import MEASURE, TRACE
from hwprof.run.roles import Role

COUNTED_SHARE: Final = 10
"""Counting a small model's layers costs up to a tenth of their time (an interrupt for every worker that spins), timing
them a fraction of a percent: so most iterations of the measure pass are only timed, and their times are reported."""

FEWEST_COUNTED: Final = 6
"""How many iterations count their layers at least, where that leaves two thirds to be timed: fewer do not tell what
counting costs. With times that vary by 1% (their MAD), 6 beside 14 tell it to 2 points."""

REPETITIONS: Final = 2
"""How often each event set is counted at least, where that leaves half of the iterations to be timed: a spread needs
two."""

ENOUGH: Final = 0.4
"""Of the iterations of a pass that are done at least, however long they take."""

ENOUGH_CALLS: Final = 100_000
"""Of layers, unless the user says how many times or how long: what they leave takes memory (50 MB) and time when all is
measured, and of a model of thousands of layers hardly any takes a share that is worth knowing better."""

FEWEST: Final = 3
"""Iterations of a pass that goes on for some time, however long one takes."""

BARE_SHARE: Final = 5
FEWEST_WITH_BARE: Final = 10
MOST_BARE: Final = 10
"""One iteration in five more is bare, of a pass that has ten: without it nobody knows what watching every layer costs a
model of many small ones. A spread needs two."""

IDLE_S: Final = 0.5
"""How long a pass rests after warm-up when energy is measured, so that the machine's idle power is known."""


class CollectorPlan(msgspec.Struct, frozen=True):
    """One collector in one pass."""

    name: str
    options: dict[str, Any] = {}
    role: Role = Role.OTHER
    tools: tuple[Tool, ...] = ()  # that it says to have here: known also where it fails


class PassPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One pass: a worker that does ``warmup`` + ``iterations`` iterations."""

    name: str
    iterations: int
    warmup: int
    in_process: tuple[CollectorPlan, ...]
    external: tuple[CollectorPlan, ...]
    time_s: float | None = None  # goes on for that time, however many iterations that is; None: as many as planned
    precision: float | None = None  # of that time only as much as layers need to be known so well; without it, more
    # iterations than planned, until ``enough_s``, as long as they are not; see ``precision``
    enough_s: float | None = None  # so many iterations as take longer are left out (``that_fit``); None: none
    most_calls: int | None = None  # of layers: iterations that bring more are left out; None: none
    idle_s: float = 0.0
    wait_quiet_s: float = 0.0  # how long it waits, at most, until others let the processors alone
    launcher: tuple[CollectorPlan, ...] = ()  # launches the worker; at most one
    alternate: bool = True  # most iterations only time their layers
    bare_too: bool = False  # some iterations beside those planned watch no layer
    environment: dict[str, str] = {}  # of the worker, beside the user's
    threads: int | None = None  # None: as the workload's specification says
    instruction_set: str | None = None  # None: the machine's own
    times_from: str | None = None  # the pass whose times belong to this one's counts
    outputs: int = 0  # of so many first iterations what comes out is kept, as checksums
    limit_s: float | None = None  # it is ended when it takes longer
    silence_s: float | None = None  # or when not a step of it is done in that time
    limit_option: str | None = None  # the option that allows it longer
    timed: bool = True  # somebody asks for its iterations' times
    slow: bool = False  # progress is told by layer; when interrupted, the layers done are kept
    startup_s: float = 0.0  # roughly, beside that of the pass ``times_from``
    slowdown: float = 1.0  # roughly, against the pass ``times_from``
    call_s: float = 0.0  # roughly, for each counted call of a leaf layer
    left_out: tuple[CollectorRecord, ...] = ()  # the collectors that will not run, and why
    may_fail: bool = False  # the run goes on without it
    asked: bool = True  # the user named it; false: it is the fallback for what this machine lacks

    @property
    def halts(self) -> bool:
        """Whether one that is interrupted while it measures comes to an end with what it has."""
        return self.slow or (self.timed and not self.launcher)


def that_fit(plan: PassPlan, once_s: float | None, calls: int, event_sets: int) -> int:
    """How many iterations a pass does of which one takes ``once_s`` (None: not known) and calls layers ``calls`` times:
    those planned, or as many as take ``enough_s`` and bring ``ENOUGH_CALLS``; yet ``ENOUGH`` of them, and
    ``REPETITIONS`` for each event set; but no more than bring ``most_calls``, beside the first."""
    number = plan.iterations
    if plan.enough_s is not None:
        least = max(math.ceil(ENOUGH * plan.iterations), REPETITIONS * event_sets)
        if once_s:
            number = min(number, max(least, int(plan.enough_s / once_s)))
        if calls:
            number = min(number, max(least, ENOUGH_CALLS // calls))
    if plan.most_calls is not None and calls:
        number = min(number, max(1, plan.most_calls // calls))
    return number


def schedule(warmup: int, iterations: int, event_sets: int, *, alternate: bool) -> list[IterationRecord]:
    """The iterations of a pass in order: warm-up first, then timed and counted ones in turn.

    One in ``COUNTED_SHARE`` counts its layers, ``FEWEST_COUNTED`` at least where two thirds remain to be timed, and
    every event set gets its turn, ``REPETITIONS`` times if that leaves half of the iterations to be timed: where
    ``iterations`` is too small for one turn each and for timed iterations, counting goes first. ``event_sets`` is 0
    without counters; then layers are only timed.
    """
    records = [IterationRecord(index, True, None, False) for index in range(warmup)]
    if event_sets == 0:
        return records + [IterationRecord(warmup + index, False, None, False) for index in range(iterations)]
    counted = iterations
    if alternate:
        repeated = min(REPETITIONS * event_sets, iterations // 2)
        fewest = min(FEWEST_COUNTED, iterations // 3)
        counted = min(iterations, max(iterations // COUNTED_SHARE, event_sets, repeated, fewest))
        if counted == iterations and iterations > event_sets:
            counted -= 1
    which = _spread(counted, iterations, event_sets)
    turn = 0
    for index in range(iterations):
        records.append(IterationRecord(warmup + index, False, turn % event_sets, index in which))
        turn += index in which
    return records


def with_bare(planned: Sequence[IterationRecord], further: int = 0, most: int = MOST_BARE) -> list[IterationRecord]:
    """The iterations after the warm-up with bare ones evenly among them, one in ``BARE_SHARE`` and ``most``, or
    ``further`` if that is more, and numbers that follow each other.

    Bare ones come in pairs: what alternates, as ``_spread`` has it, goes on alternating.
    """
    pairs = min(most, len(planned) // BARE_SHARE) // 2 if len(planned) >= FEWEST_WITH_BARE else 0
    pairs = max(pairs, further // 2)
    before = Counter((2 * place + 1) * len(planned) // (2 * pairs) for place in range(pairs))
    records: list[IterationRecord] = []
    for place, record in enumerate(planned):
        records += 2 * before[place] * [IterationRecord(0, True, None, False, bare=True)]
        records.append(record)
    return [msgspec.structs.replace(record, index=planned[0].index + place) for place, record in enumerate(records)]


def _spread(chosen: int, total: int, event_sets: int) -> set[int]:
    """``chosen`` of ``total`` places, one in each of as many even parts.

    A place is the last of its part, or one beside it: where a model does something else in every second iteration,
    an event set that always had its turn in even ones would count one half of the work. So its turns alternate.
    """
    places: list[int] = []
    for turn in range(chosen):
        last = -(-(turn + 1) * total // chosen) - 1
        following = -(-(turn + 2) * total // chosen) - 1
        before = places[turn - event_sets] if turn >= event_sets else None
        beside = [last, last - 1, *([last + 1] if last + 1 < min(following, total) else [])]
        free = [place for place in beside if place > (places[-1] if places else -1)]
        places.append(next((place for place in free if before is None or (place - before) % 2), last))
    return set(places)


def joint_sets(each: Sequence[Sequence[Sequence[str]]]) -> list[list[str]]:
    """The event sets of several counters that are read at the same edges: each counter goes through its own sets in
    turn, so the n-th joint set holds every counter's set n modulo how many it has."""
    return [
        [event for sets in each for event in sets[number % len(sets)]]
        for number in range(max(map(len, each), default=0))
    ]


def uncounted_sets(records: Sequence[IterationRecord], event_sets: int) -> list[int]:
    """Those of a counter's event sets for which no iteration counted layers."""
    seen = {
        record.event_set % event_sets for record in records if record.layers_counted and record.event_set is not None
    }
    return [number for number in range(event_sets) if number not in seen]


def uncounted_notes(pass_name: str, records: Sequence[IterationRecord], sets: Sequence[Sequence[str]]) -> list[Note]:
    """What to report of the event ``sets`` for which no iteration of a pass counted layers. The trace pass has few
    iterations, whatever the user asks for."""
    missing = uncounted_sets(records, len(sets))
    if missing and pass_name == TRACE:
        text = f"{len(missing)} of {len(sets)} event sets had no turn: pass {MEASURE} has the iterations for counting"
        return [Note(NoteKind.INCOMPLETE, text)]
    return [
        Note(NoteKind.INCOMPLETE, "too few iterations to count per layer", ", ".join(sets[number]), "--iterations")
        for number in missing
    ]
