"""Slices on tracks: one row of spans after the other onto as many tracks as it takes for none to be lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from hwprof.trace.encoder import SLICE_END, Events, EventSequence, Flows, Numbers, flow_fields
from hwprof.trace.nesting import EDGES_PER_NS, END_OF_TIME, Ints, Lane, NestedEvents, edges, outer_first, parents
from hwprof.trace.packets import EventType
from hwprof.trace.slice_annotations import COLUMNS, NAMELESS, SliceAnnotations
from hwprof.trace.slice_figures import Known

FIGURES: Final = 100_000
"""Counts of slices that are encoded at a time, about."""

FEWEST: Final = 256
"""Slices at a time, however many counts each has."""


@dataclass(frozen=True)
class Placed:
    """The events of some spans on one track. ``events.row`` and ``parent`` count within ``rows``."""

    sequence: EventSequence
    rows: Ints
    """Which rows of the spans; in the order in which they open."""
    events: NestedEvents
    parent: Ints

    def times_ns(self) -> Ints:
        """When each event happens; edges that were moved inside of a nanosecond come back to it."""
        return (self.events.edge + EDGES_PER_NS // 2) // EDGES_PER_NS


class SliceTrack:
    """A track and, where slices overlap on it, further ones beside it."""

    def __init__(self, add_lane: Callable[[int], EventSequence]) -> None:
        """``add_lane`` makes the track of lane 0, 1, …"""
        self._add_lane = add_lane
        self._lanes: list[tuple[Lane, EventSequence]] = []

    @property
    def lanes(self) -> int:
        """How many tracks it took."""
        return len(self._lanes)

    def place(self, spans: pl.DataFrame, until_ns: int) -> list[Placed]:
        """Puts spans (``begin_ns``, ``end_ns`` and the columns that break ties) on tracks.

        They begin after all that were placed before. The events handed out are those before ``until_ns``; the ends
        that are later follow with the next call, or with ``finish``.
        """
        begin_ns, end_ns = spans["begin_ns"].to_numpy(), spans["end_ns"].to_numpy()
        begin, end = edges(
            begin_ns, end_ns, spans["ends_parent"].to_numpy() if "ends_parent" in spans.columns else None
        )
        ties = [spans[column].to_numpy() for column in ("depth", "span") if column in spans.columns]
        rows = outer_first(begin, end, *ties)
        placed, number = [], 0
        while len(rows) or number < len(self._lanes):
            if number == len(self._lanes):
                self._lanes.append((Lane(), self._add_lane(number)))
            lane, sequence = self._lanes[number]
            admitted = lane.admit(begin[rows], end[rows])
            here = rows[admitted]
            events = lane.events(begin[here], end[here], until_ns * EDGES_PER_NS)
            placed.append(Placed(sequence, here, events, parents(events.depth)))
            rows, number = rows[~admitted], number + 1
        return placed

    def finish(self) -> list[Placed]:
        """The ends of everything still open."""
        none = np.empty(0, np.int64)
        return [Placed(sequence, none, lane.events(none, none, END_OF_TIME), none) for lane, sequence in self._lanes]


def write_annotated(
    placed: Placed,
    spans: pl.DataFrame,
    facts: SliceAnnotations,
    known: Known,
    flows: dict[int, list[int]],
    target: bool,
) -> None:
    """Writes spans one by one, each with all that is known of it.

    ``flows`` has the flows of a row: that end there if it is their ``target``, else that begin there.
    """
    rows = spans.select(COLUMNS)[placed.rows].rows()
    numbers = spans["span"].to_numpy()[placed.rows]
    at_once = max(FEWEST, FIGURES // (known.counts.height // max(len(spans), 1) + 1))
    sequence, encoded = placed.sequence, facts.encoder(placed.sequence)
    figures: list[bytes] = []  # of some of them, from row ``at`` on
    at, written = 0, 0
    times_ns, events = placed.times_ns().tolist(), list[bytes]()
    for row, is_begin in zip(placed.events.row.tolist(), placed.events.is_begin.tolist(), strict=True):
        if not is_begin:
            events.append(SLICE_END)
            continue
        if not at <= row < at + len(figures):
            sequence.write_encoded(times_ns[written : written + len(events)], events)
            at, written, events = row, written + len(events), []
            figures = facts.figures.encoded(known, numbers[at : at + at_once], sequence.annotations)
        attached = flows.get(int(placed.rows[row]), ())
        events.append(
            encoded(rows[row]) + figures[row - at] + flow_fields(() if target else attached, attached if target else ())
        )
    sequence.write_encoded(times_ns[written:], events)


def write_columns(
    placed: Placed,
    spans: pl.DataFrame,
    flows: Flows,
    texts: Sequence[str] = ("input_shapes",),
    figures: Sequence[str] = (),
) -> None:
    """Writes spans by the column: path, kind as category, the columns ``texts`` and ``figures`` (none below zero), and
    the flow that ends at a row (0: none)."""
    sequence, events = placed.sequence, placed.events
    is_begin = events.is_begin
    row = np.zeros(len(is_begin), np.int64)
    row[is_begin] = placed.rows[events.row[is_begin]]

    def at_begin(numbers: Numbers) -> Numbers:
        return np.where(is_begin, numbers[row], np.uint32(0)) if len(numbers) else np.zeros(len(row), np.uint32)

    sequence.write(
        Events(
            placed.times_ns(),
            np.where(is_begin, np.uint8(EventType.BEGIN), np.uint8(EventType.END)),
            name=at_begin(_numbers(spans["path"], sequence.names)),
            category=at_begin(_numbers(spans["kind"], sequence.categories)),
            annotations={name: at_begin(_numbers(spans[name], sequence.strings)) for name in texts},
            terminating_flow=np.where(is_begin, flows[row], np.uint64(0)) if len(flows) else None,
            figures={name: np.where(is_begin, spans[name].to_numpy()[row], -1) for name in figures},
        )
    )


def _numbers(values: pl.Series, intern: Callable[[list[str | None]], Numbers]) -> Numbers:
    """The interned number of each value, the most frequent strings first: they get the shortest numbers."""
    frequent = values.drop_nulls().value_counts(sort=True)[values.name].to_list()
    if not frequent:
        return np.zeros(len(values), np.uint32)
    numbers = np.append(intern([value or NAMELESS for value in frequent]), np.uint32(0))
    codes = values.cast(pl.Enum(frequent)).to_physical().cast(pl.Int64).fill_null(len(frequent)).to_numpy()
    chosen: Numbers = numbers[codes]
    return chosen
