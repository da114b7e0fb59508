"""Which iterations of a pass give times and which give counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from hwprof.run.manifest import IterationRecord, PassRecord

SCHEMA = {"iteration": pl.Int32, "event_set": pl.Int32, "layers_counted": pl.Boolean}


@dataclass(frozen=True)
class Iterations:
    """The iterations of a pass after warm-up.

    ``timed``: those that times come from, i.e. the ones that only timed their layers, or all where there are none such.
    ``counted``: those that read counters at layer edges.
    """

    frame: pl.DataFrame  # iteration, event_set, layers_counted
    timed: tuple[int, ...]
    counted: tuple[int, ...]

    @property
    def all(self) -> tuple[int, ...]:
        """Every iteration after warm-up."""
        return tuple(self.frame["iteration"].to_list())


def select(records: Sequence[IterationRecord]) -> Iterations:
    """Sorts a pass's iterations by what they can tell."""
    kept = [record for record in records if not record.warmup]
    frame = pl.DataFrame(
        [(record.index, record.event_set, record.layers_counted) for record in kept], schema=SCHEMA, orient="row"
    )
    counted = tuple(record.index for record in kept if record.layers_counted)
    timed = tuple(record.index for record in kept if not record.layers_counted)
    return Iterations(frame, timed or counted, counted)


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
