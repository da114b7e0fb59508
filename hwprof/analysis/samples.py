"""What ran when a sample was taken, by time alone: leaf layer, module, framework's operator, stage, iteration.

As with counts (``attribution``), one leaf layer runs at a time, so a sample of any thread belongs to the leaf that was
running then: a worker's as well as the calling thread's. Nothing is dropped: a sample in the inference but in no leaf
is ``UNATTRIBUTED``, one outside of the inference has no layer, and both can be counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hwprof.analysis.attribution import leaf_spans, whole_spans
from hwprof.analysis.nesting import nested
from hwprof.analysis.owners import UNATTRIBUTED

Numbers = NDArray[np.int64]

NONE: Final = -1

FEW_SAMPLES: Final = 10
"""With fewer samples than that a time is known to no better than a factor of two or so: nothing is derived from it."""

OWNERS: Final = ("iteration", "stage", "layer", "module", "operator")
"""The columns that samples get."""


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


def inference_spans(spans: pl.DataFrame, layers: pl.DataFrame) -> pl.DataFrame:
    """What owns the time of the inference: leaf layers, and around them ``UNATTRIBUTED`` (as ``path``)."""
    wholes = whole_spans(spans)[0].with_columns(path=pl.lit(UNATTRIBUTED))
    return pl.concat([wholes, leaf_spans(spans, layers)])


def attribute_samples(samples: pl.DataFrame, spans: pl.DataFrame, layers: pl.DataFrame) -> pl.DataFrame:
    """The samples of one pass by time, with five more columns; ``spans`` are that pass's, ``layers`` the run's.

    ``iteration`` (null: outside of any); ``stage``: the innermost one's name (null: outside); ``layer``: a leaf's path,
    ``UNATTRIBUTED`` within the inference (the iteration, where none is marked) but in no leaf, null outside of it;
    ``module``: the innermost one of the model, leaf or not, so that what a block does between leaves is its own;
    ``operator``: the innermost one that ran on the thread that calls the model (null: none, or none was recorded).
    """
    samples = samples if samples["time_ns"].is_sorted() else samples.sort("time_ns", maintain_order=True)
    times = samples["time_ns"].to_numpy()
    iterations = spans.filter(pl.col("kind") == "iteration")
    callers = iterations.select("pid", "tid").unique()
    stages = spans.filter(pl.col("kind") == "stage")
    operators = spans.filter(pl.col("kind") == "op").join(callers, on=["pid", "tid"], how="semi")
    modules = spans.filter(pl.col("kind") == "layer")
    owners = inference_spans(spans, layers)
    running = {"stage": stages, "layer": owners, "module": modules, "operator": operators}
    return samples.with_columns(
        Timeline.of(iterations).values_at(iterations["iteration"], times).alias("iteration"),
        *(
            Timeline.of(frame).values_at(_by_number(frame["path"]), times).alias(name)
            for name, frame in running.items()
        ),
    )


def coverage(attributed: pl.DataFrame) -> pl.DataFrame:
    """How many samples, and how much processor time, have which kind of owner: ``where`` is ``layer``,
    ``unattributed`` (both within the inference) or ``outside``; ``share`` is of the samples of the inference, and null
    for those outside."""
    where = (
        pl.when(pl.col("layer").is_null())
        .then(pl.lit("outside"))
        .when(pl.col("layer") == UNATTRIBUTED)
        .then(pl.lit(UNATTRIBUTED))
        .otherwise(pl.lit("layer"))
    )
    rows = attributed.group_by(where.alias("where")).agg(samples=pl.len().cast(pl.Int64), cpu_ns=pl.col("cpu_ns").sum())
    inside = pl.col("where") != "outside"
    share = pl.col("samples") / pl.col("samples").filter(inside).sum()
    return rows.with_columns(share=pl.when(inside).then(share)).sort("where")


def _by_number(names: pl.Series) -> pl.Series:
    """The names as numbers of distinct ones: each is kept once however many samples have it."""
    return names.cast(pl.Enum(names.unique(maintain_order=True)))
