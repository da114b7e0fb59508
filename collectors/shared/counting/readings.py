"""Counter readings at edges: appended as raw bytes while the workload runs, differenced afterwards with numpy.

Kinds of edge: FULL reads every thread; ENTER and LEAVE those that were active lately, the main thread last or first, so
that reading the others lies outside of the layer; GAP only the main thread, the active ones' values being those of the
edge before. A thread that an edge does not know is left out of the spans that begin or end there, so its counts show
in the spans around them (stage, iteration) and nothing is lost.

Readings come in measurement intervals: within one, threads, their order and the event set stay the same. A thread may
have several groups, each read by itself: on hybrid processors one for each kind of core. Of those only one counts at a
time, so what was not counted is what none of them ran for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from collectors.shared.counting.byte_log import ByteLog
from collectors.shared.counting.group_reads import NOT_READ, GroupReads, PythonGroupReads, make_group_reads
from collectors.shared.counting.group_reads_library import NoLibraryError
from hwprof.collector.contract import CountedSpan
from hwprof.hardware.perf_event import GROUP_HEADER_WORDS, group_read_bytes

FULL, LEAVE, GAP, ENTER = 0, 1, 2, 3

Integers = npt.NDArray[np.int64]


FULLY_RUNNING: Final = 0.99
"""Kinds of core whose running times add up to this share of the time enabled were not multiplexed: in between, the
thread was on its way from one to another."""


@dataclass(frozen=True, slots=True)
class MeasurementInterval:
    """The edges from ``first_edge`` up to the next interval's."""

    first_edge: int
    first_byte: int
    events: tuple[int, ...]  # indices into the event names, group by group
    sizes: tuple[int, ...]  # how many of them each group of a thread has
    turns: tuple[int, ...]  # the groups of which only one counts at a time
    every_core: bool  # whether one of them always does
    tids: tuple[int, ...]  # the main thread first, then the active ones, then the idle ones
    active: int  # how many of them ENTER and LEAVE read


@dataclass(frozen=True)
class CountColumns:
    """Rows of ``counts`` as arrays of equal length. ``event`` is an index into the event names."""

    iteration: Integers
    span: Integers
    tid: Integers
    event: Integers
    value: Integers
    enabled_ns: Integers
    running_ns: Integers
    negative: int = 0  # rows left out because a counter seemed to run backwards


class Readings:
    """The log of raw group reads of one pass."""

    def __init__(self, group_reads: GroupReads | None = None) -> None:
        """``group_reads`` reads the groups; None: the fastest that works here, looked for when it is first needed."""
        self._given = group_reads
        self._kinds = bytearray()
        self._reads = ByteLog()
        self._intervals: list[MeasurementInterval] = []
        self._known: dict[tuple[int, ...], tuple[int, ...]] = {}  # what intervals have in common, held once

    @cached_property
    def _group_reads(self) -> GroupReads:
        return self._given or make_group_reads(certain=frozenset({FULL}))

    @property
    def slower(self) -> NoLibraryError | None:
        """Why edges are read by Python, where compiled code would do."""
        reads = self._group_reads
        return reads.why if isinstance(reads, PythonGroupReads) else None

    @property
    def edges(self) -> int:
        """How many edges have been read."""
        return self._group_reads.edges

    def begin_interval(
        self,
        events: Sequence[int],
        fds: Sequence[int],
        tids: Sequence[int],
        active: int,
        *,
        sizes: Sequence[int] | None = None,
        turns: Sequence[int] = (),
        every_core: bool = True,
    ) -> None:
        """The next edges read these threads' groups, which count already; a layer's edge reads those of the first
        ``active`` threads.

        ``sizes``: how many of ``events`` each group of a thread has, if it has several; ``fds`` are then all groups of
        the first thread, all of the second, and so on. ``turns``: the groups of which only one counts at a time;
        ``every_core``: and one always does, unless the kernel multiplexes.
        """
        self._keep()
        sizes = tuple(sizes or (len(events),))
        events, sizes, turns, tids = (
            self._known.setdefault(one, one) for one in (tuple(events), sizes, tuple(turns), tuple(tids))
        )
        self._intervals.append(
            MeasurementInterval(len(self._kinds), len(self._reads), events, sizes, turns, every_core, tids, active)
        )
        groups = len(sizes)
        main, others, every = range(groups), range(groups, active * groups), range(len(fds))
        orders = {FULL: every, LEAVE: [*main, *others], GAP: main, ENTER: [*others, *main]}
        row_bytes = [group_read_bytes(size) for size in sizes] * len(tids)
        self._group_reads.begin(fds, row_bytes, [tid for tid in tids for _ in sizes], orders)

    def reader(self, kind: int) -> Callable[[], None]:
        """The function that reads an edge of that kind; valid for the whole pass."""
        return self._group_reads.reader(kind)

    def _keep(self) -> None:
        kinds, reads = self._group_reads.take()
        self._kinds += kinds
        self._reads.append(reads)

    def difference(self, spans: Sequence[CountedSpan]) -> tuple[CountColumns, int]:
        """What was counted between the two edges of every span, by span number: a row for each thread that both edges
        know and each event; and how many spans could not be counted because their edges lie in different intervals."""
        self._keep()
        table = np.array(
            [(span.span, span.iteration, span.begin_edge, span.end_edge) for span in spans], dtype=np.int64
        ).reshape(-1, 4)
        starts = np.array([interval.first_edge for interval in self._intervals] or [0], dtype=np.int64)
        home = np.searchsorted(starts, table[:, 2], side="right") - 1
        same = home == np.searchsorted(starts, table[:, 3], side="right") - 1
        inside = same & (table[:, 3] < self.edges)
        parts = [
            self._difference_interval(number, table[inside & (home == number)])
            for number in np.unique(home[inside]).tolist()
        ]
        columns = [np.concatenate([part[column] for part in parts] or [_EMPTY]) for column in range(7)]
        order = np.argsort(columns[1], kind="stable")
        forward = order[np.minimum.reduce(columns[4:])[order] >= 0]
        iteration, span, tid, event, value, enabled_ns, running_ns = (column[forward] for column in columns)
        negative = len(order) - len(forward)
        counted = CountColumns(iteration, span, tid, event, value, enabled_ns, running_ns, negative)
        return counted, int((~inside).sum())

    def _difference_interval(self, number: int, spans: Integers) -> list[Integers]:
        interval = self._intervals[number]
        words, rows = self._decode(number)
        begin, end = rows[spans[:, 2] - interval.first_edge], rows[spans[:, 3] - interval.first_edge]
        which, thread = np.nonzero((begin >= 0) & (end >= 0))
        values, enabled_ns, running_ns = _by_event(words[end[which, thread]] - words[begin[which, thread]], interval)
        events = np.array(interval.events, dtype=np.int64)
        tids = np.array(interval.tids, dtype=np.int64)

        def spread(column: Integers) -> Integers:
            return np.repeat(column, len(events))

        return [
            spread(spans[which, 1]),
            spread(spans[which, 0]),
            spread(tids[thread]),
            np.tile(events, len(which)),
            values.ravel(),
            enabled_ns.ravel(),
            running_ns.ravel(),
        ]

    def _decode(self, number: int) -> tuple[Integers, Integers]:
        """The interval's reads as a matrix, a row for all groups of a thread at an edge; and for each of its edges and
        threads which row that is, or -1."""
        interval = self._intervals[number]
        later = self._intervals[number + 1] if number + 1 < len(self._intervals) else None
        last_edge = later.first_edge if later else self.edges
        last_byte = later.first_byte if later else len(self._reads)
        kinds = np.frombuffer(self._kinds[interval.first_edge : last_edge], dtype=np.uint8)
        threads, active = len(interval.tids), interval.active
        counts = np.array([threads, active, 1, active], dtype=np.int64)[kinds]
        offsets = np.cumsum(counts) - counts
        column = np.arange(threads, dtype=np.int64)
        rows = np.where(column < counts[:, None], offsets[:, None] + column, -1)
        entered = kinds == ENTER
        rows[entered, :active] = offsets[entered, None] + (column[:active] - 1) % max(1, active)
        # At a gap the active threads hold what the last edge before it read.
        read_before = np.maximum.accumulate(np.where(kinds != GAP, np.arange(len(kinds)), -1))
        held = (kinds == GAP) & (read_before >= 0)
        rows[held, 1:active] = rows[read_before[held], 1:active]
        return _words(self._reads.read(interval.first_byte, last_byte), interval.sizes, rows), rows


def _words(reads: bytes, sizes: Sequence[int], rows: Integers) -> Integers:
    """The reads as a matrix, all groups of a thread in a row; a row with a read that the kernel cut short (a group in
    error state) counts as not read."""
    each = [group_read_bytes(size) // 8 for size in sizes]
    words = np.frombuffer(reads, dtype=np.int64).reshape(-1, sum(each))
    starts = np.cumsum([0, *each[:-1]])
    short = np.flatnonzero((words[:, starts] == NOT_READ).any(axis=1))
    if len(short):
        rows[np.isin(rows, short)] = -1
    return words


def _by_event(delta: Integers, interval: MeasurementInterval) -> tuple[Integers, Integers, Integers]:
    """Values, times enabled and times running, each as (rows, events).

    Groups that count in turn share their running time: together they miss what none of them ran for, and where they
    hardly miss anything, a group that did not run counted a true 0. Where not every kind of core has a group, what is
    missed cannot be distinguished from time elsewhere, and the counts stand as they are.
    """
    starts = np.cumsum([0, *(GROUP_HEADER_WORDS + size for size in interval.sizes[:-1])])
    enabled_ns, running_ns = delta[:, starts + 1], delta[:, starts + 2]
    if interval.turns:
        turns = list(interval.turns)
        together = running_ns[:, turns].sum(axis=1, keepdims=True)
        whole = enabled_ns[:, turns]
        all_the_time = together >= FULLY_RUNNING * whole if interval.every_core else np.ones_like(whole, dtype=bool)
        running_ns[:, turns] = np.where(all_the_time, whole, together)
    values = [
        delta[:, start + GROUP_HEADER_WORDS : start + GROUP_HEADER_WORDS + size]
        for start, size in zip(starts.tolist(), interval.sizes, strict=True)
    ]
    return (
        np.concatenate(values, axis=1),
        np.repeat(enabled_ns, interval.sizes, axis=1),
        np.repeat(running_ns, interval.sizes, axis=1),
    )


_EMPTY: Integers = np.empty(0, dtype=np.int64)
