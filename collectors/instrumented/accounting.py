"""From blocks and how often each was executed to sums by span, thread and event, and by kernel. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from collectors.instrumented.log import Integers, Log
from collectors.instrumented.memory import Entries
from collectors.symbols.domains import Domain
from collectors.symbols.kernels import Kernel
from hwprof.session.collector import CountedSpan


class Event(Protocol):
    """What is told of sums: a weighted sum of facts."""

    @property
    def full_name(self) -> str:
        """As tables have it."""

    @property
    def counted_domains(self) -> frozenset[Domain]:
        """Whose code counts."""

    @property
    def of_kernels(self) -> bool:
        """Whether it is told of kernels too."""

    @property
    def busiest(self) -> bool:
        """Whether only the thread counts that has the most between two edges."""

    def weights(self) -> npt.NDArray[np.int64]:
        """Shape (facts,)."""


@dataclass(frozen=True)
class Sums:
    """What was executed, by interval, thread and kernel: ``facts`` has shape (rows, facts), the others (rows,).
    Sorted by interval."""

    interval: Integers
    thread: Integers  # index into ``tids``
    kernel: Integers  # index into ``kernels``
    facts: Integers
    intervals: int
    tids: tuple[int, ...]
    kernels: tuple[Kernel, ...]


@dataclass(frozen=True)
class Counted:
    """Rows of a table as arrays of equal length: ``span`` is an index into the spans, ``event`` into the events,
    ``kernel`` into the kernels (empty where they are summed)."""

    span: Integers
    thread: Integers
    kernel: Integers
    event: Integers
    value: Integers


def starts_of(log: Log) -> npt.NDArray[np.uint64]:
    """The addresses of all blocks, context after context."""
    return np.concatenate([blocks["start"] for blocks in log.blocks] or [np.empty(0, np.uint64)])


def add_up(log: Log, kernel_of: Integers, kernels: Sequence[Kernel]) -> Sums:
    """``kernel_of``: for each of ``starts_of`` the number of its kernel."""
    all_facts = np.concatenate([blocks["facts"] for blocks in log.blocks] or [np.empty((0, 0), np.uint32)])
    block = _numbers(log, log.entries)
    executions = log.entries["executions"].astype(np.int64)

    def amounts(number: int, order: Integers) -> Integers:
        done: Integers = executions[order] * all_facts[block[order], number]
        return done

    return sum_entries(log, log.entries, log.intervals(), kernel_of, kernels, all_facts.shape[1], amounts)


def sum_entries(
    log: Log,
    entries: Entries,
    interval: Integers,
    kernel_of: Integers,
    kernels: Sequence[Kernel],
    facts: int,
    amounts: Callable[[int, Integers], Integers],
) -> Sums:
    """Of any log's entries (``context``, ``block``), each with its ``interval``. ``amounts(fact, order)``: how much
    of a fact each has, in that order; asked for one fact at a time, because all together take a gigabyte."""
    tids = tuple(dict.fromkeys(int(context.tid) for context in log.contexts))
    thread_of = np.array([tids.index(int(context.tid)) for context in log.contexts] or [0], dtype=np.int64)
    thread, kernel = thread_of[entries["context"]], kernel_of[_numbers(log, entries)]
    key = (interval * len(tids) + thread) * len(kernels) + kernel
    order = np.argsort(key, kind="stable")
    begins = np.flatnonzero(np.diff(key[order], prepend=-1))
    summed = np.empty((len(begins), facts), dtype=np.int64)
    for number in range(facts):
        summed[:, number] = np.add.reduceat(amounts(number, order), begins, dtype=np.int64) if len(begins) else 0
    rows = order[begins]
    return Sums(interval[rows], thread[rows], kernel[rows], summed, log.edges, tids, tuple(kernels))


def _numbers(log: Log, entries: Entries) -> Integers:
    """Which of ``starts_of`` each entry's block is."""
    first = np.cumsum([0, *(len(blocks) for blocks in log.blocks)])
    numbers: Integers = first[entries["context"]] + entries["block"].astype(np.int64)
    return numbers


def count(sums: Sums, spans: Sequence[CountedSpan], first_edge: int, events: Sequence[Event], main_tid: int) -> Counted:
    """For every span, thread and event the value, zeros included. ``first_edge``: the log's edge that the spans' edge 0
    is. An event of the busiest thread is counted to ``main_tid``, whoever that was."""
    main = sums.tids.index(main_tid) if main_tid in sums.tids else 0
    begin, end = _edges(spans, first_edge)
    threads = len(sums.tids)
    columns = []
    for event in events:
        within = _in_domains(sums, event)
        values = sums.facts[within] @ event.weights()
        by_interval = np.zeros((sums.intervals, threads), dtype=np.int64)
        np.add.at(by_interval, (sums.interval[within], sums.thread[within]), values)
        if event.busiest:
            most = by_interval.max(axis=1)
            by_interval[:] = 0
            by_interval[:, main] = most
        so_far = np.cumsum(by_interval, axis=0)
        columns.append(so_far[end] - so_far[begin])
    value = np.stack(columns, axis=-1) if columns else np.empty((len(spans), threads, 0), dtype=np.int64)
    span, thread, event_number = (index.ravel() for index in np.indices(value.shape))
    return Counted(span, thread, np.empty(0, dtype=np.int64), event_number, value.ravel())


def count_kernels(sums: Sums, spans: Sequence[CountedSpan], first_edge: int, events: Sequence[Event]) -> Counted:
    """As ``count``, by kernel, without zeros. Every domain's kernels are in it, the OpenMP runtime's too."""
    chosen = [number for number, event in enumerate(events) if event.of_kernels]
    if not spans or not chosen:
        return Counted(*(np.empty(0, dtype=np.int64) for _ in range(5)))
    weights = np.stack([events[number].weights() for number in chosen], axis=-1)
    values = sums.facts @ weights
    begin, end = _edges(spans, first_edge)
    low = np.searchsorted(sums.interval, begin, side="right")  # the first row after the edge `begin`
    high = np.searchsorted(sums.interval, end, side="right")
    parts = [
        _kernels_of_span(sums, values, number, slice(*rows), np.array(chosen))
        for number, rows in enumerate(zip(low.tolist(), high.tolist(), strict=True))
    ]
    return Counted(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _kernels_of_span(
    sums: Sums, values: Integers, span: int, rows: slice, events: Integers
) -> tuple[Integers, Integers, Integers, Integers, Integers]:
    key = sums.thread[rows] * len(sums.kernels) + sums.kernel[rows]
    keys, place = np.unique(key, return_inverse=True)
    total = np.zeros((len(keys), values.shape[1]), dtype=np.int64)
    np.add.at(total, place, values[rows])
    row, column = np.nonzero(total)
    thread, kernel = np.divmod(keys[row], len(sums.kernels))
    return np.full(len(row), span, dtype=np.int64), thread, kernel, events[column], total[row, column]


def _edges(spans: Sequence[CountedSpan], first_edge: int) -> tuple[Integers, Integers]:
    begin = np.array([span.begin_edge for span in spans], dtype=np.int64)
    end = np.array([span.end_edge for span in spans], dtype=np.int64)
    return begin + first_edge, end + first_edge


def _in_domains(sums: Sums, event: Event) -> npt.NDArray[np.bool_]:
    domains = event.counted_domains
    inside = np.array([kernel.domain in domains for kernel in sums.kernels] or [False])
    within: npt.NDArray[np.bool_] = inside[sums.kernel]
    return within
