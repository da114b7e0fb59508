"""From sums by interval, thread and kernel to counts by span, thread and event, and by kernel. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from collectors.instrumented.accounting import Sums, begins_of, sum_runs
from collectors.instrumented.log import Integers
from collectors.shared.symbols.domains import Domain
from hwprof.collector.contract import CountedSpan

ROWS: Final = 1 << 17
"""Of sums, whose events are there at a time: 25 MB."""

Weights = npt.NDArray[np.int64]
Totals = tuple[Integers, Integers]
"""Keys, rising, and what each has."""


class Event(Protocol):
    """A reported figure: a weighted sum of facts."""

    @property
    def full_name(self) -> str:
        """As tables have it."""

    @property
    def counted_domains(self) -> frozenset[Domain]:
        """Whose code counts."""

    @property
    def of_kernels(self) -> bool:
        """Whether it is reported of kernels too."""

    @property
    def busiest(self) -> bool:
        """Whether only the thread counts that has the most between two edges."""

    def weights(self) -> npt.NDArray[np.int64]:
        """Shape (facts,)."""


@dataclass(frozen=True)
class Counted:
    """Rows of a table as arrays of equal length: ``span`` is an index into the spans, ``event`` into the events,
    ``kernel`` into the kernels (empty where they are summed)."""

    span: Integers
    thread: Integers
    kernel: Integers
    event: Integers
    value: Integers


def count(sums: Sums, spans: Sequence[CountedSpan], edges: Integers, events: Sequence[Event], main_tid: int) -> Counted:
    """For every span, thread and event the value, zeros included. ``edges``: for each edge of the spans its number
    in the log. An event of the busiest thread is counted to ``main_tid``, whoever that was."""
    main = sums.tids.index(main_tid) if main_tid in sums.tids else 0
    begin, end = _edges(spans, edges)
    low, high = (int(begin.min()), int(end.max())) if spans else (0, 0)
    columns = [np.empty((0, 0), dtype=np.int64)] * len(events)
    for number, by_interval in _by_interval(sums, events, low, high):
        if events[number].busiest:
            most = by_interval.max(axis=1)
            by_interval[:] = 0
            by_interval[:, main] = most
        so_far = np.cumsum(by_interval, axis=0)
        columns[number] = so_far[end - low] - so_far[begin - low]
    sums.spill.give_back()
    value = np.stack(columns, axis=-1) if columns else np.empty((len(spans), len(sums.tids), 0), dtype=np.int64)
    span, thread, event_number = (index.ravel() for index in np.indices(value.shape))
    return Counted(span, thread, np.empty(0, dtype=np.int64), event_number, value.ravel())


def _by_interval(sums: Sums, events: Sequence[Event], low: int, high: int) -> Iterator[tuple[int, Integers]]:
    """Of each event, in no order, its number and its values, shape (intervals from ``low`` to ``high``, threads); of
    ``low`` nothing, which is before that edge."""
    domains = np.array([list(Domain).index(kernel.domain) for kernel in sums.kernels] or [0], dtype=np.uint8)
    parts = [_part(sums, rows, low, domains) for rows in _pieces(slice(*sums.rows_until[[low, high]].tolist()))]
    alike: dict[bytes, list[int]] = {}  # of the same facts
    for number, event in enumerate(events):
        alike.setdefault(event.weights().tobytes(), []).append(number)
    for numbers in alike.values():
        weights = events[numbers[0]].weights()
        dense = {number: np.zeros((high - low + 1, len(sums.tids)), dtype=np.int64) for number in numbers}
        for part in parts:
            values = _weighted(sums, weights, part.differing)
            if not values.any():
                continue
            values = values[part.which]
            for number, found in dense.items():
                counted = np.array([domain in events[number].counted_domains for domain in Domain])[part.domain]
                found.reshape(-1)[part.keys] += np.add.reduceat(np.where(counted, values, 0), part.begins)
        yield from dense.items()


class _Part(NamedTuple):
    """Rows whose sums by interval and thread begin at ``begins``; ``keys``: of which. They have the facts of those that
    are ``differing``, each of ``which`` of these, and its kernel's ``domain``."""

    differing: Integers
    which: Integers
    domain: npt.NDArray[np.uint8]
    begins: Integers
    keys: Integers


def _part(sums: Sums, rows: slice, low: int, domains: npt.NDArray[np.uint8]) -> _Part:
    interval = sums.interval[rows].astype(np.int64) - low
    keys = interval * len(sums.tids) + sums.thread[rows]  # rising, as rows are ordered
    begins = begins_of(keys)
    return _Part(*_differing(sums, rows), domains[sums.kernel[rows]], begins, keys[begins])


def _differing(sums: Sums, rows: slice) -> tuple[Integers, Integers]:
    """Those whose facts some rows have, rising, and of each row which of these."""
    which, number = sums.which[rows], sums.facts[0].rows if sums.facts else 0
    if number > len(which):
        differing, place = np.unique(which, return_inverse=True)
        return differing.astype(np.int64), place
    there = np.zeros(number, dtype=bool)
    there[which] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[which]


def _pieces(rows: slice) -> Iterator[slice]:
    """Of ``ROWS`` each."""
    for start in range(rows.start, rows.stop, ROWS):
        yield slice(start, min(start + ROWS, rows.stop))


def count_kernels(sums: Sums, spans: Sequence[CountedSpan], edges: Integers, events: Sequence[Event]) -> Counted:
    """As ``count``, by kernel, without zeros. Every domain's kernels are in it, the OpenMP runtime's too."""
    chosen = [number for number, event in enumerate(events) if event.of_kernels]
    if not spans or not chosen:
        return Counted(*(np.empty(0, dtype=np.int64) for _ in range(5)))
    weights = [events[number].weights() for number in chosen]
    begin, end = _edges(spans, edges)
    low = sums.rows_until[begin].tolist()  # the first row after the edge `begin`
    high = sums.rows_until[end].tolist()
    ranges = [slice(*rows) for rows in zip(low, high, strict=True)]
    found = [
        _rows_of(number, *totals, len(sums.kernels), np.array(chosen))
        for number, totals in enumerate(_by_kernel(sums, ranges, weights))
    ]
    sums.spill.give_back()
    return Counted(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _by_kernel(sums: Sums, ranges: Sequence[slice], weights: Sequence[Weights]) -> Iterator[Totals]:
    """Of each range of rows its threads and kernels, as one number, and their events. Ranges follow one another, or lie
    in one another: those of many layers have few rows together."""
    large = _of_large(sums, [rows for rows in ranges if rows.stop - rows.start > ROWS], weights)
    at, values = slice(0, 0), _events_of(sums, slice(0, 0), weights)
    for number, rows in enumerate(ranges):
        if rows.stop - rows.start > ROWS:
            yield large[rows.start, rows.stop]
            continue
        if not at.start <= rows.start <= rows.stop <= at.stop:
            stops = [one.stop for one in ranges[number:] if rows.start <= one.start and one.stop <= rows.start + ROWS]
            at = slice(rows.start, max(stops))
            values = _events_of(sums, at, weights)
        yield _of_few(sums, rows, values[rows.start - at.start : rows.stop - at.start])


def _of_large(sums: Sums, ranges: Sequence[slice], weights: Sequence[Weights]) -> dict[tuple[int, int], Totals]:
    """By begin and end. The inner ones first: of one around another only what is beside that is added up anew."""
    found: dict[tuple[int, int], Totals] = {}
    for rows in sorted(ranges, key=lambda one: one.stop - one.start):
        inside = [place for place in found if rows.start <= place[0] and place[1] <= rows.stop]
        begin, end = max(inside, key=lambda place: place[1] - place[0], default=(rows.stop, rows.stop))
        parts = [_of_many(sums, slice(*piece), weights) for piece in ((rows.start, begin), (end, rows.stop))]
        if inside:
            parts.append(found[begin, end])
        keys, totals = zip(*parts, strict=True)
        found[rows.start, rows.stop] = _summed(np.concatenate(keys), np.concatenate(totals))
    return found


def _of_many(sums: Sums, rows: slice, weights: Sequence[Weights]) -> Totals:
    """A part of the rows after the other."""
    keys, totals = [], []
    for part in [*_pieces(rows)] or [rows]:
        found = _of_few(sums, part, _events_of(sums, part, weights))
        keys.append(found[0])
        totals.append(found[1])
    return _summed(np.concatenate(keys), np.concatenate(totals))


def _of_few(sums: Sums, rows: slice, values: Integers) -> Totals:
    """``values``: of these rows."""
    return _summed(sums.thread[rows].astype(np.int64) * len(sums.kernels) + sums.kernel[rows], values)


def _summed(keys: Integers, values: Integers) -> Totals:
    if (keys[1:] > keys[:-1]).all():  # as those of a span in one interval are
        return keys, values
    order = np.argsort(keys, kind="stable")
    return sum_runs(keys[order], values[order])


def _events_of(sums: Sums, rows: slice, weights: Sequence[Weights]) -> Integers:
    """Shape (rows, events)."""
    differing, which = _differing(sums, rows)
    values = np.empty((len(differing), len(weights)), dtype=np.int64)
    for number, one in enumerate(weights):
        values[:, number] = _weighted(sums, one, differing)
    return values[which]


def _weighted(sums: Sums, weights: Weights, differing: Integers) -> Integers:
    """``facts @ weights`` of these, where most weights are 0: products of integers have no fast library."""
    total: Integers = np.zeros(len(differing), dtype=np.int64)
    for number in np.flatnonzero(weights).tolist():
        total += sums.facts[number].at(differing) * weights[number]
    return total


def _rows_of(
    span: int, keys: Integers, totals: Integers, kernels: int, events: Integers
) -> tuple[Integers, Integers, Integers, Integers, Integers]:
    """Those of a span, as ``Counted`` has them."""
    row, column = np.nonzero(totals)
    thread, kernel = np.divmod(keys[row], kernels)
    return np.full(len(row), span, dtype=np.int64), thread, kernel, events[column], totals[row, column]


def _edges(spans: Sequence[CountedSpan], edges: Integers) -> tuple[Integers, Integers]:
    begin = np.array([span.begin_edge for span in spans], dtype=np.int64)
    end = np.array([span.end_edge for span in spans], dtype=np.int64)
    return edges[begin], edges[end]
