"""Counter readings at edges: appended as raw bytes while the workload runs, differenced afterwards with numpy.

Kinds of edge: FULL reads every thread; ENTER and LEAVE those that were active lately, the main thread last or first, so
that reading the others lies outside of the layer; GAP only the main thread, the active ones' values being those of the
edge before. A thread that an edge does not know is left out of the spans that begin or end there, so its counts show
in the spans around them (stage, iteration) and nothing is lost.

Readings come in stretches: within one, threads, their order and the event set stay the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hwprof.hardware.perf_event import GROUP_HEADER_WORDS, group_read_bytes
from hwprof.session.collector import CountedSpan

FULL, LEAVE, GAP, ENTER = 0, 1, 2, 3

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Stretch:
    """The edges from ``first_edge`` up to the next stretch's."""

    first_edge: int
    first_row: int
    events: tuple[int, ...]  # indices into the event names
    tids: tuple[int, ...]  # the main thread first, then the active ones, then the idle ones
    active: int  # how many of them a sweep reads


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


class Readings:
    """The log of raw group reads of one pass. ``read`` takes a descriptor and a size, as ``os.read`` does."""

    def __init__(self, read: Callable[[int, int], bytes] = os.read) -> None:
        self._read = read
        self._rows: list[bytes] = []
        self._kinds: list[int] = []
        self._stretches: list[Stretch] = []
        # The readers below hold these lists, so they are only ever changed in place.
        self._all: list[int] = []
        self._active: list[int] = []
        self._main: list[int] = []
        self._main_last: list[int] = []  # the active ones, in another order
        self._size = [0]

    @property
    def edges(self) -> int:
        """How many edges have been read."""
        return len(self._kinds)

    def begin_stretch(self, events: tuple[int, ...], fds: Sequence[int], tids: Sequence[int], active: int) -> None:
        """The next edges read these groups: of all threads, the first ``active`` of which a layer's edge reads."""
        self._stretches.append(Stretch(self.edges, len(self._rows), events, tuple(tids), active))
        self._all[:] = fds
        self._active[:] = fds[:active]
        self._main[:] = fds[:1]
        self._main_last[:] = [*fds[1:active], *fds[:1]]
        self._size[0] = group_read_bytes(len(events))

    def reader(self, kind: int) -> Callable[[], None]:
        """The function that reads an edge of that kind; valid for the whole pass."""
        keep, mark, read, size = self._rows.append, self._kinds.append, self._read, self._size
        fds = (self._all, self._active, self._main, self._main_last)[kind]

        def edge() -> None:
            mark(kind)
            length = size[0]
            for fd in fds:
                keep(read(fd, length))

        return edge

    def difference(self, spans: Sequence[CountedSpan]) -> tuple[CountColumns, int]:
        """What was counted between the two edges of every span, by span number: a row for each thread that both edges
        know and each event; and how many spans could not be counted because their edges lie in different stretches."""
        table = np.array(
            [(span.span, span.iteration, span.begin_edge, span.end_edge) for span in spans], dtype=np.int64
        ).reshape(-1, 4)
        starts = np.array([stretch.first_edge for stretch in self._stretches] or [0], dtype=np.int64)
        home = np.searchsorted(starts, table[:, 2], side="right") - 1
        same = home == np.searchsorted(starts, table[:, 3], side="right") - 1
        inside = same & (table[:, 3] < self.edges)
        parts = [
            self._difference_stretch(number, table[inside & (home == number)])
            for number in np.unique(home[inside]).tolist()
        ]
        columns = [np.concatenate([part[column] for part in parts] or [_EMPTY]) for column in range(7)]
        order = np.argsort(columns[1], kind="stable")
        return CountColumns(*(column[order] for column in columns)), int((~inside).sum())

    def _difference_stretch(self, number: int, spans: Integers) -> list[Integers]:
        stretch = self._stretches[number]
        words, rows = self._decode(number)
        begin, end = rows[spans[:, 2] - stretch.first_edge], rows[spans[:, 3] - stretch.first_edge]
        which, thread = np.nonzero((begin >= 0) & (end >= 0))
        delta = words[end[which, thread]] - words[begin[which, thread]]
        events = np.array(stretch.events, dtype=np.int64)
        tids = np.array(stretch.tids, dtype=np.int64)

        def spread(values: Integers) -> Integers:
            return np.repeat(values, len(events))

        return [
            spread(spans[which, 1]),
            spread(spans[which, 0]),
            spread(tids[thread]),
            np.tile(events, len(which)),
            delta[:, GROUP_HEADER_WORDS:].ravel(),
            spread(delta[:, 1]),
            spread(delta[:, 2]),
        ]

    def _decode(self, number: int) -> tuple[Integers, Integers]:
        """The stretch's reads as (reads, words), and for each of its edges and threads which read it is, or -1."""
        stretch = self._stretches[number]
        following = self._stretches[number + 1] if number + 1 < len(self._stretches) else None
        last_edge = following.first_edge if following else self.edges
        last_row = following.first_row if following else len(self._rows)
        kinds = np.array(self._kinds[stretch.first_edge : last_edge], dtype=np.int64)
        threads, active = len(stretch.tids), stretch.active
        counts = np.array([threads, active, 1, active], dtype=np.int64)[kinds]
        offsets = np.cumsum(counts) - counts
        column = np.arange(threads, dtype=np.int64)
        rows = np.where(column < counts[:, None], offsets[:, None] + column, -1)
        entered = kinds == ENTER
        rows[entered, :active] = offsets[entered, None] + (column[:active] - 1) % max(1, active)
        # At a gap the active threads hold what the last edge before it read.
        swept = np.maximum.accumulate(np.where(kinds != GAP, np.arange(len(kinds)), -1))
        held = (kinds == GAP) & (swept >= 0)
        rows[held, 1:active] = rows[swept[held], 1:active]
        return self._words(self._rows[stretch.first_row : last_row], len(stretch.events), rows), rows

    @staticmethod
    def _words(reads: Sequence[bytes], events: int, rows: Integers) -> Integers:
        """The reads as a matrix; one that the kernel cut short (a group in error state) counts as not read."""
        size = group_read_bytes(events)
        short = [index for index, read in enumerate(reads) if len(read) != size]
        if short:
            rows[np.isin(rows, short)] = -1
            reads = [read if len(read) == size else bytes(size) for read in reads]
        return np.frombuffer(b"".join(reads), dtype=np.int64).reshape(-1, size // 8)


_EMPTY: Integers = np.empty(0, dtype=np.int64)
