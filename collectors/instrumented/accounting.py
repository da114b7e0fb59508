"""From blocks and how often each was executed to sums by step, thread and kernel. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import chain, pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from collectors.instrumented.alike import Distinct, signatures
from collectors.instrumented.columns import Column, Narrow, Part, merged_column, narrowed, packed
from collectors.instrumented.log import Integers, Log
from collectors.instrumented.memory import Entries
from collectors.instrumented.spill import Spill
from collectors.shared.symbols.domains import Domain
from collectors.shared.symbols.kernels import Kernel
from hwprof import helper_threads

PART: Final = 1 << 17
"""How many entries are added up at a time: their arrays stay in the processor's caches, and in memory that the process
has already; of a whole log (millions) most of the time would go into getting new pages."""

ADDING: Final = 2
"""How many threads add up."""

DIGEST_BYTES: Final = 16
"""Two that differ share one with a probability of 1e-38."""

Amounts = Callable[[int], tuple[Integers, Integers]]
"""For a fact: which of some entries have something of it (their places, rising), and how much."""


@dataclass(frozen=True)
class Sums:
    """What was executed, by step, thread and kernel, in their order: each of the four has so many rows. A step is what
    one interval did, or many: what a model does, it does again and again."""

    step: Narrow
    thread: Narrow  # index into ``tids``
    kernel: Narrow  # index into ``kernels``
    which: Narrow  # whose facts they have: many did the same
    facts: Sequence[Column]  # of what differs
    steps: Integers  # of each interval its step; one that has no rows where it is nobody's
    tids: tuple[int, ...]
    kernels: tuple[Kernel, ...]
    spill: Spill = field(default_factory=Spill)  # has the facts

    @cached_property
    def begins(self) -> Integers:
        """Where the rows of each step begin, and where those of the last one end."""
        number = int(self.steps.max(initial=-1)) + 1
        return np.concatenate([[0], np.cumsum(np.bincount(self.step, minlength=number))])

    def rows_of(self, steps: Integers) -> tuple[Integers, Integers]:
        """The rows of these steps, one step after the other, and of each row which of these it is of."""
        lengths = self.begins[steps + 1] - self.begins[steps]
        place = np.repeat(np.arange(len(steps)), lengths)
        return np.arange(len(place)) + np.repeat(self.begins[steps] - (np.cumsum(lengths) - lengths), lengths), place


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


def add_up(
    log: Log, kernel_of: Integers, kernels: Sequence[Kernel], nobodys: Sequence[int] = (), spill: Spill | None = None
) -> Sums:
    """``kernel_of``: for each of ``starts_of`` the number of its kernel; ``nobodys``: intervals that do not count;
    ``spill``: where the facts go."""
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

    def made_of(entries: Entries) -> Sequence[npt.NDArray[Any]]:
        return _numbers(log, entries), entries["executions"]

    return sum_entries(log, log.entries, log.ends, kernel_of, kernels, len(facts), amounts_of, made_of, nobodys, spill)


def sum_entries(
    log: Log,
    entries: Entries,
    ends: Integers,
    kernel_of: Integers,
    kernels: Sequence[Kernel],
    facts: int,
    amounts_of: Callable[[Entries], Amounts],
    made_of: Callable[[Entries], Sequence[npt.NDArray[Any]]],
    nobodys: Sequence[int] = (),
    spill: Spill | None = None,
) -> Sums:
    """Of any log's entries (``context``, ``block``), in rising intervals with these ``ends``; without those of
    intervals that are ``nobodys``. ``amounts_of``: what some of them have, asked for one fact at a time, because all
    together take a gigabyte; ``made_of``: the columns that these follow from."""
    spill = spill or Spill()
    tids = tuple(dict.fromkeys(int(context.tid) for context in log.contexts))
    thread_of = np.array([tids.index(int(context.tid)) for context in log.contexts] or [0], dtype=np.int64)
    sizes = np.diff(ends, prepend=0)
    somebodys = np.setdiff1d(np.arange(len(ends)), np.array(nobodys, dtype=np.int64))
    distinct = Distinct()

    def sum_part(intervals: Integers) -> tuple[list[Narrow], int, list[Part]]:
        interval = np.repeat(intervals, sizes[intervals])
        taken = np.concatenate([entries[:0], *(entries[ends[one] - sizes[one] : ends[one]] for one in intervals)])
        thread = thread_of[taken["context"]]
        kernel = kernel_of[_numbers(log, taken)]
        key = (interval * len(tids) + thread) * len(kernels) + kernel
        order = np.argsort(key, kind="stable")  # the log is nearly sorted, which this kind makes use of
        begins = begins_of(key[order])
        keys = [narrowed(column[order[begins]]) for column in (interval, thread, kernel)]
        taken, lengths = taken[order], np.diff(begins, append=len(order))
        which, new, number = distinct.numbers(signatures(made_of(taken), begins))
        anew = np.zeros(len(begins), dtype=bool)
        anew[new] = True
        row_of = np.repeat(np.arange(len(new)), lengths[anew])
        summed = _sum_facts(row_of, len(new), facts, amounts_of(taken[np.repeat(anew, lengths)]))
        amounts = _kept([packed(column) for column in summed], spill)
        log.give_back()
        return [*keys, narrowed(which)], number, amounts

    first = _first_alike(log, entries, ends, sizes, somebodys)
    different = somebodys[first == somebodys]
    parts = [different[part] for part in _parts(np.cumsum(sizes[different]))]
    # numpy lets others run while it works on an array
    keys, numbers, amounts = zip(*helper_threads.each(sum_part, parts, ADDING), strict=True)
    columns = [np.concatenate(column) for column in zip(*keys, strict=True)]
    in_order = [amounts[place] for place in np.argsort(numbers, kind="stable")]
    facts_of = tuple(merged_column(parts) for parts in zip(*in_order, strict=True))
    interval, thread, kernel, which = columns
    steps = np.full(len(ends), len(different), dtype=np.int64)
    steps[somebodys] = np.searchsorted(different, first)
    step = narrowed(np.searchsorted(different, interval))
    return Sums(step, thread, kernel, which, facts_of, steps, tids, tuple(kernels), spill)


def _first_alike(log: Log, entries: Entries, ends: Integers, sizes: Integers, intervals: Integers) -> Integers:
    """Of each interval the first one with the very same entries."""

    def digests(part: Integers) -> list[bytes]:
        begins = ends[part] - sizes[part]
        found = [
            digest(entries[begin:end].tobytes())
            for begin, end in zip(begins.tolist(), ends[part].tolist(), strict=True)
        ]
        log.give_back()
        return found

    parts = [intervals[part] for part in _parts(np.cumsum(sizes[intervals]))]
    first: dict[bytes, int] = {}
    alike = chain.from_iterable(helper_threads.each(digests, parts, ADDING))
    return np.array([first.setdefault(digest, one) for digest, one in zip(alike, intervals.tolist(), strict=True)], int)


def digest(data: bytes) -> bytes:
    """What stands for it, to be told apart from others."""
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()


def _kept(parts: Sequence[Part], spill: Spill) -> list[Part]:
    """The same, whose arrays may lie in a file."""
    placed = [part.places for part in parts if part.places is not None]
    arrays = spill.put([*(part.values for part in parts), *placed])
    places = iter(arrays[len(parts) :])
    return [
        Part(part.rows, values, None if part.places is None else next(places))
        for part, values in zip(parts, arrays, strict=False)
    ]


def _parts(ends: Integers) -> list[slice]:
    """The intervals of a log, in parts of about ``PART`` entries each; at least one."""
    cuts = [0]
    while cuts[-1] < len(ends):
        before = int(ends[cuts[-1] - 1]) if cuts[-1] else 0
        cuts.append(max(cuts[-1] + 1, int(np.searchsorted(ends, before + PART, side="right"))))
    return [slice(*cut) for cut in pairwise(cuts)] or [slice(0, 0)]


def _sum_facts(row_of: Integers, rows: int, facts: int, amounts: Amounts) -> Iterator[Integers]:
    """Of each fact, shape (rows,). ``row_of``: of each entry, rising."""
    for fact in range(facts):
        places, values = amounts(fact)
        having, sums = sum_runs(row_of[places], values)
        summed = np.zeros(rows, dtype=np.int64)
        summed[having] = sums
        yield summed


def sum_runs(keys: Integers, values: Integers) -> tuple[Integers, Integers]:
    """Of values (one or more for each key) whose keys are sorted: the keys, and their sums."""
    begins = begins_of(keys)
    if not len(begins):
        return keys, values
    return keys[begins], np.add.reduceat(values, begins, axis=0, dtype=np.int64)


def begins_of(keys: Integers) -> Integers:
    """Where in sorted keys another one begins."""
    changes: Integers = np.flatnonzero(keys[1:] != keys[:-1]) + 1
    return np.concatenate([np.zeros(min(len(keys), 1), dtype=np.int64), changes])


def _numbers(log: Log, entries: Entries) -> Integers:
    """Which of ``starts_of`` each entry's block is."""
    first = np.cumsum([0, *(len(blocks) for blocks in log.blocks)])
    numbers: Integers = first[entries["context"]] + entries["block"].astype(np.int64)
    return numbers
