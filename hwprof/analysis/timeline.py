"""Time cut into pieces, each owned by one of the spans that were open then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hwprof.analysis.nesting import nested

Numbers = NDArray[np.int64]

NONE: Final = -1


@dataclass(frozen=True)
class Timeline:
    """Time cut at ``edges`` (ascending): from each on, the row ``owner`` of the spans it was made of, or ``NONE``."""

    edges: Numbers
    owner: Numbers

    @classmethod
    def of(cls, spans: pl.DataFrame) -> Timeline:
        """Of spans with ``begin_ns`` and ``end_ns`` (exclusive). Of several that are open the one that began last owns
        the time: the innermost of those that are nested."""
        begins, ends = spans["begin_ns"].to_numpy(), spans["end_ns"].to_numpy()
        order = np.lexsort((-ends, begins))
        begins, ends = begins[order], ends[order]
        if (begins[1:] >= ends[:-1]).all():
            edges, owner = np.stack([begins, ends], axis=1).ravel(), np.full(2 * len(order), NONE, dtype=np.int64)
            owner[::2] = order
            return cls(edges, owner)
        return cls._nested(begins, ends, order) or cls._one_by_one(begins.tolist(), ends.tolist(), order)

    def durations(self, spans: int) -> Numbers:
        """For how long each of the ``spans`` that it was made of owns the time (ns)."""
        owned = self.owner[:-1] != NONE
        lengths = np.diff(self.edges)[owned]
        return np.bincount(self.owner[:-1][owned], weights=lengths, minlength=spans).astype(np.int64)

    @classmethod
    def _nested(cls, begins: Numbers, ends: Numbers, order: Numbers) -> Timeline | None:
        """All at once; None where spans overlap without lying one within the other."""
        lasting = ends > begins
        begins, ends, order = begins[lasting], ends[lasting], order[lasting]
        around = nested(begins, ends, np.zeros(len(begins), dtype=np.int64))
        if around is None:
            return None
        number = np.arange(len(begins))
        # at one time ends come first, of the inner spans before the outer ones; then begins, the outer ones first
        turn = np.concatenate((-number - 1, number))
        times = np.concatenate((ends, begins))
        owners = np.concatenate((np.where(around == NONE, NONE, order[around]), order))
        places = np.lexsort((turn, times))
        return cls(times[places], owners[places])

    @classmethod
    def _one_by_one(cls, begins: list[int], ends: list[int], order: Numbers) -> Timeline:
        edges: list[int] = []
        owner: list[int] = []
        opened: list[int] = []  # places in `order`; below the last one may be some that have ended

        def close(until: int | None) -> None:
            while opened and (until is None or ends[opened[-1]] <= until):
                closed = ends[opened.pop()]
                while opened and ends[opened[-1]] <= closed:
                    opened.pop()
                edges.append(closed)
                owner.append(opened[-1] if opened else NONE)

        for place, begin in enumerate(begins):
            close(begin)
            opened.append(place)
            edges.append(begin)
            owner.append(place)
        close(None)
        places = np.array(owner, dtype=np.int64)
        return cls(np.array(edges, dtype=np.int64), np.where(places == NONE, NONE, order[places]))

    def without(self, begins_ns: Numbers, ends_ns: Numbers) -> Timeline:
        """The same where nothing owns these intervals, which ascend and do not overlap."""
        edges = np.unique(np.concatenate((self.edges, begins_ns, ends_ns)))
        owner = np.concatenate(([NONE], self.owner))[np.searchsorted(self.edges, edges, side="right")]
        inside = np.searchsorted(begins_ns, edges, side="right") > np.searchsorted(ends_ns, edges, side="right")
        return Timeline(edges, np.where(inside, NONE, owner))

    def at(self, times_ns: Numbers) -> Numbers:
        """For each of the times, which ascend, the row of the span that owns it, or ``NONE``.

        The edges are looked up among the times and not the other way round: there are far fewer of them.
        """
        return np.repeat(np.concatenate(([NONE], self.owner)), self._lengths(times_ns))

    def values_at(self, values: pl.Series, times_ns: Numbers) -> pl.Series:
        """As ``at``, what ``values`` has in the rows; null for ``NONE``. Looked up by the edge and not by the time."""
        extended = pl.concat([values, pl.Series(values.name, [None], dtype=values.dtype)])
        rows = np.concatenate(([NONE], self.owner))
        pieces = extended.gather(np.where(rows == NONE, len(values), rows))
        return pieces.gather(np.repeat(np.arange(len(pieces), dtype=np.uint32), self._lengths(times_ns)))

    def _lengths(self, times_ns: Numbers) -> Numbers:
        """How many of the times lie before the first edge, and from each edge to the next."""
        return np.diff(np.searchsorted(times_ns, self.edges), prepend=0, append=len(times_ns))

    def overlaps(self, begins_ns: Numbers, ends_ns: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """What intervals share with the spans that own time: (number of the interval, row of the span, nanoseconds)."""
        interval, piece, begin, end = self.pieces(begins_ns, ends_ns)
        return interval, self.owner[piece], end - begin

    def pieces(self, begins_ns: Numbers, ends_ns: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Intervals cut at the edges, where a span owns the time: (number of the interval, place of the edge before,
        begin, end)."""
        if not len(self.edges):
            nothing = np.zeros(0, dtype=np.int64)
            return nothing, nothing, nothing, nothing
        first = np.maximum(np.searchsorted(self.edges, begins_ns, side="right") - 1, 0)
        count = np.maximum(np.searchsorted(self.edges, ends_ns) - first, 0)
        interval = np.repeat(np.arange(len(count)), count)
        piece = np.arange(len(interval)) - np.repeat(np.cumsum(count) - count, count) + first[interval]
        until = np.append(self.edges[1:], self.edges[-1:])
        begin = np.maximum(self.edges[piece], begins_ns[interval])
        end = np.minimum(until[piece], ends_ns[interval])
        real = (self.owner[piece] != NONE) & (end > begin)
        return interval[real], piece[real], begin[real], end[real]
