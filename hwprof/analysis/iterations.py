"""Which iterations of a pass give times and which give counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from hwprof.run.manifest import Disturbance, IterationRecord, PassRecord

SCHEMA = {"iteration": pl.Int32, "event_set": pl.Int32, "layers_counted": pl.Boolean}

DISTURBED_SHARE: Final = 0.05
"""From which part of its time on, lost to others, an iteration counts as disturbed. Threads wait for one another many
times in an iteration, so what each of them lost adds up."""

ENOUGH: Final = 3
"""With so many undisturbed iterations of a kind the disturbed ones are left out: a median of three has no outlier."""

STOLEN_TICK_NS: Final = 10_000_000
"""What stolen time is told in (1 s / USER_HZ, which is 100): one tick may be older than the iteration."""


@dataclass(frozen=True)
class Iterations:
    """The iterations of a pass after warm-up, without those that were disturbed where enough others remain.

    ``timed``: those that times come from, i.e. the ones that only timed their layers, or all where there are none such.
    ``counted``: those that read counters at layer edges. ``left_out``: the disturbed ones that are in neither.
    ``disturbed``: those that are kept all the same.
    """

    frame: pl.DataFrame  # iteration, event_set, layers_counted
    timed: tuple[int, ...]
    counted: tuple[int, ...]
    left_out: tuple[int, ...] = ()
    disturbed: tuple[int, ...] = ()

    @property
    def all(self) -> tuple[int, ...]:
        """Every iteration after warm-up that is not left out."""
        return tuple(self.frame["iteration"].to_list())


def select(records: Sequence[IterationRecord], *, disturbed_too: bool = False) -> Iterations:
    """Sorts a pass's iterations by what they can tell. ``disturbed_too``: none is left out."""
    measured = [record for record in records if not record.warmup]
    kept = measured if disturbed_too else _undisturbed(measured)
    frame = pl.DataFrame(
        [(record.index, record.event_set, record.layers_counted) for record in kept], schema=SCHEMA, orient="row"
    )
    counted = tuple(record.index for record in kept if record.layers_counted)
    timed = tuple(record.index for record in kept if not record.layers_counted)
    known = {record.index for record in kept}
    left_out = tuple(record.index for record in measured if record.index not in known)
    disturbed = tuple(record.index for record in kept if is_disturbed(record))
    return Iterations(frame, timed or counted, counted, left_out, disturbed)


def is_disturbed(record: IterationRecord) -> bool:
    """Whether others took much of its time, by its own evidence: preempted threads, and time that the hypervisor took.
    What hwprof's own processes took is none: a pass with them has its times from elsewhere, or tells what it costs."""
    found = record.disturbance
    if found is None:
        return False
    waited_ns = waited_for_others_ns(found) or 0
    stolen_ns = max((found.stolen_ns or 0) - STOLEN_TICK_NS, 0)
    return waited_ns + stolen_ns > DISTURBED_SHARE * found.elapsed_ns


def waited_for_others_ns(found: Disturbance) -> int | None:
    """How long its threads waited for a processor that other programs had; None: the kernel does not tell. Without
    preemptions that is a moment for each that is woken, and nobody's doing. A process of hwprof's own makes one thread
    wait for as long as it runs, at most."""
    if found.waited_ns is None:
        return None
    return max(found.waited_ns - found.own_ns, 0) if found.preemptions else 0


def disturbed_iterations(record: PassRecord) -> tuple[int, ...]:
    """The numbers of a pass's disturbed iterations, after warm-up."""
    return tuple(entry.index for entry in record.iterations if not entry.warmup and is_disturbed(entry))


def _undisturbed(records: Sequence[IterationRecord]) -> list[IterationRecord]:
    """Without the disturbed ones, of each kind that has enough others: those that time their layers, and those that
    count one event set at their edges."""
    calm = Counter(_kind(record) for record in records if not is_disturbed(record))
    return [record for record in records if not is_disturbed(record) or calm[_kind(record)] < ENOUGH]


def _kind(record: IterationRecord) -> int | None:
    """The event set that it counts at layer edges; -1: its counters are in no set, None: it counts none."""
    if not record.layers_counted:
        return None
    return -1 if record.event_set is None else record.event_set


def countable(record: PassRecord, iterations: Iterations) -> pl.DataFrame:
    """The pairs (iteration, event) that the pass's event sets say were counted at layer edges.

    An event that stands in no set (a source without sets) may come in any counting iteration: such are not listed.
    """
    rows = [
        (index, event)
        for index, number, counted in iterations.frame.iter_rows()
        if counted and number is not None and number < len(record.event_sets)
        for event in record.event_sets[number]
    ]
    return pl.DataFrame(rows, schema={"iteration": pl.Int32, "event": pl.String}, orient="row")
