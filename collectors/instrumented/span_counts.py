"""From sums by step, thread and kernel to counts by span, thread and event, and by kernel. Pure."""

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
    steps, step_of = np.unique(sums.steps[low + 1 : high + 1], return_inverse=True)
    parts = [_part(sums, *rows, domains) for rows in _pieces(*sums.rows_of(steps))]
    alike: dict[bytes, list[int]] = {}  # of the same facts
    for number, event in enumerate(events):
        alike.setdefault(event.weights().tobytes(), []).append(number)
    for numbers in alike.values():
        weights = events[numbers[0]].weights()
        by_step = {number: np.zeros((len(steps), len(sums.tids)), dtype=np.int64) for number in numbers}
        for part in parts:
            values = _weighted(sums, weights, part.differing)
            if not values.any():
                continue
            values = values[part.which]
            for number, found in by_step.items():
                counted = np.array([domain in events[number].counted_domains for domain in Domain])[part.domain]
                found.reshape(-1)[part.keys] += np.add.reduceat(np.where(counted, values, 0), part.begins)
        for number, found in by_step.items():
            yield number, np.concatenate([np.zeros((1, len(sums.tids)), dtype=np.int64), found[step_of]])


class _Part(NamedTuple):
    """Rows whose sums by step and thread begin at ``begins``; ``keys``: of which. They have the facts of those that
    are ``differing``, each of ``which`` of these, and its kernel's ``domain``."""

    differing: Integers
    which: Integers
    domain: npt.NDArray[np.uint8]
    begins: Integers
    keys: Integers


def _part(sums: Sums, rows: Integers, step: Integers, domains: npt.NDArray[np.uint8]) -> _Part:
    keys = step * len(sums.tids) + sums.thread[rows]  # rising, as rows are ordered
    begins = begins_of(keys)
    return _Part(*_differing(sums, rows), domains[sums.kernel[rows]], begins, keys[begins])


def _differing(sums: Sums, rows: Integers) -> tuple[Integers, Integers]:
    """Those whose facts some rows have, rising, and of each row which of these."""
    which, number = sums.which[rows], sums.facts[0].rows if sums.facts else 0
    if number > len(which):
        differing, place = np.unique(which, return_inverse=True)
        return differing.astype(np.int64), place
    there = np.zeros(number, dtype=bool)
    there[which] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[which]


def _pieces(rows: Integers, place: Integers) -> Iterator[tuple[Integers, Integers]]:
    """Of ``ROWS`` each."""
    for start in range(0, len(rows), ROWS):
        yield rows[start : start + ROWS], place[start : start + ROWS]


def count_kernels(sums: Sums, spans: Sequence[CountedSpan], edges: Integers, events: Sequence[Event]) -> Counted:
    """As ``count``, by kernel, without zeros. Every domain's kernels are in it, the OpenMP runtime's too."""
    chosen = [number for number, event in enumerate(events) if event.of_kernels]
    if not spans or not chosen:
        return Counted(*(np.empty(0, dtype=np.int64) for _ in range(5)))
    weights = [events[number].weights() for number in chosen]
    begin, end = (edge.tolist() for edge in _edges(spans, edges))
    steps = [
        _Steps(number, *np.unique(sums.steps[one + 1 : other + 1], return_counts=True))
        for number, (one, other) in enumerate(zip(begin, end, strict=True))
    ]
    found = [_summed_steps(sums, some, weights) for some in _together(sums, steps)]
    keys, totals = (np.concatenate(column) for column in zip(*found, strict=True))
    sums.spill.give_back()
    row, event = np.nonzero(totals)
    of_span, kernel = np.divmod(keys[row], len(sums.kernels))
    span, thread = np.divmod(of_span, len(sums.tids))
    return Counted(span, thread, kernel, np.array(chosen)[event], totals[row, event])


class _Steps(NamedTuple):
    """What one span did, and how often."""

    span: int
    steps: Integers
    times: Integers


def _together(sums: Sums, spans: Sequence[_Steps]) -> Iterator[list[_Steps]]:
    """Spans that have about ``ROWS`` together; at least one."""
    some, rows = list[_Steps](), 0
    for one in spans:
        more = int((sums.begins[one.steps + 1] - sums.begins[one.steps]).sum())
        if some and rows + more > ROWS:
            yield some
            some, rows = [], 0
        some.append(one)
        rows += more
    yield some


def _summed_steps(sums: Sums, spans: Sequence[_Steps], weights: Sequence[Weights]) -> Totals:
    """By span, thread and kernel, as one number; the events of each."""
    rows, place = sums.rows_of(np.concatenate([one.steps for one in spans]))
    span = np.repeat([one.span for one in spans], [len(one.steps) for one in spans])
    times = np.concatenate([one.times for one in spans])
    parts = [_of_rows(sums, some, span[at], times[at], weights) for some, at in _pieces(rows, place)]
    if not parts:
        return np.empty(0, dtype=np.int64), np.empty((0, len(weights)), dtype=np.int64)
    keys, totals = zip(*parts, strict=True)
    return parts[0] if len(parts) == 1 else _summed(np.concatenate(keys), np.concatenate(totals))


def _of_rows(sums: Sums, rows: Integers, span: Integers, times: Integers, weights: Sequence[Weights]) -> Totals:
    keys = (span * len(sums.tids) + sums.thread[rows]) * len(sums.kernels) + sums.kernel[rows]
    return _summed(keys, _events_of(sums, rows, weights) * times[:, np.newaxis])


def _summed(keys: Integers, values: Integers) -> Totals:
    if (keys[1:] > keys[:-1]).all():  # as those of spans in one interval each are
        return keys, values
    order = np.argsort(keys, kind="stable")
    return sum_runs(keys[order], values[order])


def _events_of(sums: Sums, rows: Integers, weights: Sequence[Weights]) -> Integers:
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


def _edges(spans: Sequence[CountedSpan], edges: Integers) -> tuple[Integers, Integers]:
    begin = np.array([span.begin_edge for span in spans], dtype=np.int64)
    end = np.array([span.end_edge for span in spans], dtype=np.int64)
    return edges[begin], edges[end]
