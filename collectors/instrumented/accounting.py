"""From blocks and how often each was executed to sums by span, thread and event, and by kernel. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from collectors.instrumented.log import Integers, Log
from collectors.instrumented.memory import Entries
from collectors.shared.symbols.domains import Domain
from collectors.shared.symbols.kernels import Kernel
from hwprof.collector.contract import CountedSpan

PART: Final = 1 << 17
"""How many entries are added up at a time: their arrays stay in the processor's caches, and in memory that the process
has already; of a whole log (millions) most of the time would go into getting new pages."""

ADDING: Final = 2
"""How many threads add up."""

Amounts = Callable[[int], tuple[Integers, Integers]]
"""For a fact: which of some entries have something of it (their places, rising), and how much."""


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
class Sums:
    """What was executed, by interval, thread and kernel, in their order: ``facts`` has shape (rows, facts), the others
    (rows,)."""

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


def merged(kernels: Sequence[Kernel]) -> tuple[Integers, list[Kernel]]:
    """Kernels with the same name are one: copies of a function with other template arguments, and JIT kernels whose
    ordinals only order them by creation. For each the number of what it becomes, and those; what several
    become has no address, and no full name but the one that they share."""
    numbers: dict[tuple[Domain, str, str | None], int] = {}
    become: list[Kernel] = []
    number_of = np.empty(len(kernels), dtype=np.int64)
    for place, kernel in enumerate(kernels):
        number = number_of[place] = numbers.setdefault((kernel.domain, kernel.library, kernel.name), len(become))
        if number == len(become):
            become.append(kernel)
        else:
            full_name = kernel.full_name if kernel.full_name == become[number].full_name else None
            become[number] = replace(become[number], full_name=full_name, address=None)
    return number_of, become


def add_up(log: Log, kernel_of: Integers, kernels: Sequence[Kernel], nobodys: Sequence[int] = ()) -> Sums:
    """``kernel_of``: for each of ``starts_of`` the number of its kernel; ``nobodys``: intervals that do not count."""
    of_blocks = np.concatenate([blocks["facts"] for blocks in log.blocks] or [np.empty((0, 0), np.uint32)])
    facts = of_blocks.T.astype(np.int64)
    some = np.packbits(facts != 0, axis=0)  # a block has few of the facts: a bit for each

    def amounts_of(entries: Entries) -> Amounts:
        blocks, times = _numbers(log, entries), entries["executions"].astype(np.int64)

        @lru_cache(maxsize=1)
        def eight(byte: int) -> npt.NDArray[np.uint8]:
            return np.take(some[byte], blocks)  # eight facts, asked for one after the other

        def amounts(fact: int) -> tuple[Integers, Integers]:
            places = np.flatnonzero((eight(fact // 8) & (128 >> fact % 8)) != 0)
            return places, times[places] * facts[fact][blocks[places]]

        return amounts

    return sum_entries(log, log.entries, log.ends, kernel_of, kernels, len(facts), amounts_of, nobodys)


def sum_entries(
    log: Log,
    entries: Entries,
    ends: Integers,
    kernel_of: Integers,
    kernels: Sequence[Kernel],
    facts: int,
    amounts_of: Callable[[Entries], Amounts],
    nobodys: Sequence[int] = (),
) -> Sums:
    """Of any log's entries (``context``, ``block``), in rising intervals with these ``ends``; without those of
    intervals that are ``nobodys``. ``amounts_of``: what some of them have, asked for one fact at a time, because all
    together take a gigabyte."""
    tids = tuple(dict.fromkeys(int(context.tid) for context in log.contexts))
    thread_of = np.array([tids.index(int(context.tid)) for context in log.contexts] or [0], dtype=np.int64)
    somebodys = np.ones(log.edges + 1, dtype=bool)
    somebodys[np.array(nobodys, dtype=np.int64)] = False

    def sum_part(part: slice) -> tuple[Integers, Integers, Integers, Integers]:
        before = int(ends[part.start - 1]) if part.start else 0
        interval = np.repeat(np.arange(part.start, part.stop), np.diff(ends[part], prepend=before))
        taken = np.asarray(entries[before : before + len(interval)])
        thread = thread_of[taken["context"]]
        kernel = kernel_of[_numbers(log, taken)]
        key = (interval * len(tids) + thread) * len(kernels) + kernel
        order = np.argsort(key, kind="stable")  # the log is nearly sorted, which this kind makes use of
        begins = _begins(key[order])
        row_of = np.repeat(np.arange(len(begins)), np.diff(begins, append=len(order)))
        rows = order[begins]
        sums = _sum_facts(row_of, len(begins), facts, amounts_of(taken[order]))
        kept = somebodys[interval[rows]]
        rows = rows[kept]
        return interval[rows], thread[rows], kernel[rows], sums[kept]

    with ThreadPoolExecutor(ADDING) as threads:  # numpy lets others run while it works on an array
        columns = [list(column) for column in zip(*threads.map(sum_part, _parts(ends)), strict=True)]
    interval, thread, kernel, sums = (_concatenated(column) for column in columns)
    return Sums(interval, thread, kernel, sums, log.edges, tids, tuple(kernels))


def _concatenated(parts: list[Integers]) -> Integers:
    """One array of them all; ``parts`` is emptied meanwhile, as they take hundreds of megabytes."""
    whole = np.empty((sum(map(len, parts)), *parts[0].shape[1:]), dtype=np.int64)
    end = len(whole)
    while parts:
        part = parts.pop()
        whole[end - len(part) : end] = part
        end -= len(part)
    return whole


def _parts(ends: Integers) -> list[slice]:
    """The intervals of a log, in parts of about ``PART`` entries each; at least one."""
    cuts = [0]
    while cuts[-1] < len(ends):
        before = int(ends[cuts[-1] - 1]) if cuts[-1] else 0
        cuts.append(max(cuts[-1] + 1, int(np.searchsorted(ends, before + PART, side="right"))))
    return [slice(*cut) for cut in pairwise(cuts)] or [slice(0, 0)]


def _sum_facts(row_of: Integers, rows: int, facts: int, amounts: Amounts) -> Integers:
    """Shape (rows, facts). ``row_of``: of each entry, rising."""
    summed = np.zeros((rows, facts), dtype=np.int64)
    for fact in range(facts):
        places, values = amounts(fact)
        having, sums = _sum_runs(row_of[places], values)
        summed[having, fact] = sums
    return summed


def _sum_runs(keys: Integers, values: Integers) -> tuple[Integers, Integers]:
    """Of values (one or more for each key) whose keys are sorted: the keys, and their sums."""
    begins = _begins(keys)
    if not len(begins):
        return keys, values
    return keys[begins], np.add.reduceat(values, begins, axis=0, dtype=np.int64)


def _begins(keys: Integers) -> Integers:
    """Where in sorted keys another one begins."""
    changes: Integers = np.flatnonzero(keys[1:] != keys[:-1]) + 1
    return np.concatenate([np.zeros(min(len(keys), 1), dtype=np.int64), changes])


def _numbers(log: Log, entries: Entries) -> Integers:
    """Which of ``starts_of`` each entry's block is."""
    first = np.cumsum([0, *(len(blocks) for blocks in log.blocks)])
    numbers: Integers = first[entries["context"]] + entries["block"].astype(np.int64)
    return numbers


def count(sums: Sums, spans: Sequence[CountedSpan], edges: Integers, events: Sequence[Event], main_tid: int) -> Counted:
    """For every span, thread and event the value, zeros included. ``edges``: for each edge of the spans its number
    in the log. An event of the busiest thread is counted to ``main_tid``, whoever that was."""
    main = sums.tids.index(main_tid) if main_tid in sums.tids else 0
    begin, end = _edges(spans, edges)
    domains = list(Domain)
    domain_of = np.array([domains.index(kernel.domain) for kernel in sums.kernels] or [0], dtype=np.int64)[sums.kernel]
    columns = []
    for event in events:
        counted = np.array([domain in event.counted_domains for domain in domains])[domain_of]
        by_interval = _by_interval(sums, np.where(counted, _weighted(sums.facts, event.weights()), 0))
        if event.busiest:
            most = by_interval.max(axis=1)
            by_interval[:] = 0
            by_interval[:, main] = most
        so_far = np.cumsum(by_interval, axis=0)
        columns.append(so_far[end] - so_far[begin])
    value = np.stack(columns, axis=-1) if columns else np.empty((len(spans), len(sums.tids), 0), dtype=np.int64)
    span, thread, event_number = (index.ravel() for index in np.indices(value.shape))
    return Counted(span, thread, np.empty(0, dtype=np.int64), event_number, value.ravel())


def _by_interval(sums: Sums, values: Integers) -> Integers:
    """Shape (intervals, threads), of values by row."""
    dense = np.zeros((sums.intervals, len(sums.tids)), dtype=np.int64)
    keys, total = _sum_runs(sums.interval * len(sums.tids) + sums.thread, values)  # rows are in this order
    dense.reshape(-1)[keys] = total
    return dense


def count_kernels(sums: Sums, spans: Sequence[CountedSpan], edges: Integers, events: Sequence[Event]) -> Counted:
    """As ``count``, by kernel, without zeros. Every domain's kernels are in it, the OpenMP runtime's too."""
    chosen = [number for number, event in enumerate(events) if event.of_kernels]
    if not spans or not chosen:
        return Counted(*(np.empty(0, dtype=np.int64) for _ in range(5)))
    begin, end = _edges(spans, edges)
    low = np.searchsorted(sums.interval, begin, side="right")  # the first row after the edge `begin`
    high = np.searchsorted(sums.interval, end, side="right")
    first = int(low.min())
    facts = sums.facts[first : int(high.max())]
    values = np.stack([_weighted(facts, events[number].weights()) for number in chosen], axis=-1)
    parts = [
        _kernels_of_span(sums, values[rows[0] - first : rows[1] - first], number, slice(*rows), np.array(chosen))
        for number, rows in enumerate(zip(low.tolist(), high.tolist(), strict=True))
    ]
    return Counted(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _weighted(facts: Integers, weights: Integers) -> Integers:
    """``facts @ weights``, where most weights are 0: products of integers have no fast library."""
    some = np.flatnonzero(weights)
    if not len(some):
        return np.zeros(len(facts), dtype=np.int64)
    total: Integers = facts[:, some[0]] * weights[some[0]]
    for number in some[1:]:
        total += facts[:, number] * weights[number]
    return total


def _kernels_of_span(
    sums: Sums, values: Integers, span: int, rows: slice, events: Integers
) -> tuple[Integers, Integers, Integers, Integers, Integers]:
    """``rows``: the span's in the sums, which have these ``values``."""
    key = sums.thread[rows] * len(sums.kernels) + sums.kernel[rows]
    order = np.argsort(key, kind="stable")
    keys, total = _sum_runs(key[order], values[order])
    row, column = np.nonzero(total)
    thread, kernel = np.divmod(keys[row], len(sums.kernels))
    return np.full(len(row), span, dtype=np.int64), thread, kernel, events[column], total[row, column]


def _edges(spans: Sequence[CountedSpan], edges: Integers) -> tuple[Integers, Integers]:
    begin = np.array([span.begin_edge for span in spans], dtype=np.int64)
    end = np.array([span.end_edge for span in spans], dtype=np.int64)
    return edges[begin], edges[end]
