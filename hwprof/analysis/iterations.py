"""Which iterations of a pass give times and which give counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from hwprof.analysis.disturbed import ENOUGH, is_disturbed
from hwprof.run.manifest import IterationRecord, PassRecord

SCHEMA = {"iteration": pl.Int32, "event_set": pl.Int32, "layers_counted": pl.Boolean}


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
