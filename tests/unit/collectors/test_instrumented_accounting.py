"""From executed blocks to sums by span, thread, event and kernel."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.instrumented import accounting, span_counts
from collectors.instrumented.accounting import Sums, add_up, merged, starts_of
from collectors.instrumented.columns import Column
from collectors.instrumented.events import Event
from collectors.instrumented.facts import Fact
from collectors.instrumented.log import Log
from collectors.instrumented.memory import BLOCK, LOG_ENTRY, Context
from collectors.instrumented.span_counts import Counted, count, count_kernels
from collectors.shared.symbols.domains import Domain
from collectors.shared.symbols.kernels import Kernel
from hwprof.collector.contract import CountedSpan

JIT = Kernel(Domain.JIT, "jit", "conv", address=0x1000)
SPIN = Kernel(Domain.OPENMP, "libgomp.so.1", None)
MAIN = 7
EDGES = np.arange(10)
INSTRUCTIONS = Event(name="instructions", facts=("instructions",), by_kernel=True, meaning="")
MEMORY = Event(name="memory", facts=("loads", "stores"), meaning="")
WAITING = Event(name="waiting", facts=("instructions",), domains=(Domain.OPENMP,), meaning="")


def blocks(*each: dict[Fact, int]) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    made = np.zeros(len(each), dtype=BLOCK)
    for number, facts in enumerate(each):
        made[number]["start"] = 0x1000 * (number + 1)
        for fact, value in facts.items():
            made[number]["facts"][fact] = value
    return made


def log(threads: list[int], entries: list[tuple[int, int, int]], ends: list[int]) -> Log:
    """Of every thread block 0 is the kernel (3 instructions, 2 loads, 1 store), block 1 spins (2 instructions)."""
    each = blocks({Fact.INSTRUCTIONS: 3, Fact.LOADS: 2, Fact.STORES: 1}, {Fact.INSTRUCTIONS: 2})
    contexts = [Context(tid=tid, blocks_used=2) for tid in threads]
    columns = np.array(entries, dtype=LOG_ENTRY)
    nothing = np.full((len(ends), 2), -1)
    return Log(contexts, [each] * len(threads), columns, np.array(ends), np.arange(len(ends)) * 100, nothing)


def sums(made: Log, nobodys: Sequence[int] = ()) -> Sums:
    return add_up(made, np.array([0, 1] * len(made.contexts)), [JIT, SPIN], nobodys)


def rows(counted: Counted, *columns: str) -> list[tuple[int, ...]]:
    return list(zip(*(getattr(counted, column).tolist() for column in columns), strict=True))


def test_it_is_added_up_though_the_models_code_has_replaced_pythons_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    made = log([7], [(0, 0, number) for number in range(1, 6)], [1, 2, 3, 4, 5])
    monkeypatch.setattr(accounting, "PART", 1)

    def refuse(_: threading.Thread) -> None:
        raise AssertionError("it would begin nothing")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert len(sums(made).step) == 5


def test_a_span_has_what_was_executed_between_its_edges() -> None:
    made = log([7], [(0, 0, 100), (0, 0, 10), (0, 0, 1)], [1, 2, 3])
    spans = [CountedSpan(5, 0, 0, 1), CountedSpan(6, 0, 1, 2), CountedSpan(4, 0, 0, 2)]
    assert rows(count(sums(made), spans, EDGES, [INSTRUCTIONS, MEMORY], MAIN), "span", "event", "value") == [
        (0, 0, 30), (0, 1, 30), (1, 0, 3), (1, 1, 3), (2, 0, 33), (2, 1, 33),
    ]  # fmt: skip


def test_edges_of_the_self_test_are_skipped() -> None:
    made = log([7], [(0, 0, 100), (0, 0, 10)], [0, 1, 2])
    assert count(sums(made), [CountedSpan(0, 0, 0, 1)], EDGES[1:], [INSTRUCTIONS], MAIN).value.tolist() == [30]


def test_waiting_is_apart_from_work_in_counts_and_a_kernel_of_its_own_by_kernel() -> None:
    made = log([7, 8], [(0, 0, 1), (1, 1, 50)], [0, 2])
    span = [CountedSpan(0, 0, 0, 1)]
    assert rows(count(sums(made), span, EDGES, [INSTRUCTIONS, WAITING], MAIN), "thread", "event", "value") == [
        (0, 0, 3), (0, 1, 0), (1, 0, 0), (1, 1, 100),
    ]  # fmt: skip
    by_kernel = count_kernels(sums(made), span, EDGES, [INSTRUCTIONS, WAITING])
    assert rows(by_kernel, "thread", "kernel", "event", "value") == [(0, 0, 0, 3), (1, 1, 0, 100)]


def test_the_busiest_thread_counts_edge_by_edge_and_without_waiting() -> None:
    """Main does 10, then 1 while the worker does 4 and waits: 10 + 4 kernels of 3 instructions, on the main thread."""
    made = log([MAIN, 8], [(0, 0, 10), (1, 1, 500), (0, 0, 1), (1, 0, 4)], [0, 2, 4])
    spans = [CountedSpan(0, 0, 0, 1), CountedSpan(1, 0, 1, 2), CountedSpan(2, 0, 0, 2)]
    critical = Event(name="critical", facts=("instructions",), busiest=True, meaning="")
    assert rows(count(sums(made), spans, EDGES, [critical], MAIN), "span", "thread", "value") == [
        (0, 0, 30), (0, 1, 0), (1, 0, 12), (1, 1, 0), (2, 0, 42), (2, 1, 0),
    ]  # fmt: skip
    assert count_kernels(sums(made), spans, EDGES, [critical]).value.tolist() == []


def test_the_busiest_thread_is_the_main_one_s_wherever_that_stands_in_the_log() -> None:
    made = log([8, MAIN], [(0, 0, 4), (1, 0, 1)], [0, 2])
    critical = Event(name="critical", facts=("instructions",), busiest=True, meaning="")
    counted = count(sums(made), [CountedSpan(0, 0, 0, 1)], EDGES, [critical], MAIN)
    assert rows(counted, "thread", "value") == [(0, 0), (1, 12)]


def test_two_contexts_of_one_thread_are_one_thread() -> None:
    made = log([7, 7], [(0, 0, 1), (1, 0, 2)], [0, 2])
    added = sums(made)
    assert added.tids == (7,)
    assert count(added, [CountedSpan(0, 0, 0, 1)], EDGES, [INSTRUCTIONS], MAIN).value.tolist() == [9]


def test_nothing_executed_is_a_counted_zero() -> None:
    made = log([7], [], [0, 0])
    assert count(sums(made), [CountedSpan(0, 0, 0, 1)], EDGES, [INSTRUCTIONS], MAIN).value.tolist() == [0]
    assert count_kernels(sums(made), [CountedSpan(0, 0, 0, 1)], EDGES, [INSTRUCTIONS]).value.tolist() == []
    assert count_kernels(sums(made), [], EDGES, [INSTRUCTIONS]).value.tolist() == []


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(1, 2**40)), max_size=5),
        min_size=2,
        max_size=8,
    )
)
def test_kernels_and_intervals_add_up_to_the_whole(intervals: list[list[tuple[int, int, int]]]) -> None:
    """Whatever was executed: leaf spans add up to the span around them, kernels to their span, without rounding."""
    entries = [entry for interval in intervals for entry in interval]
    ends = np.cumsum([len(interval) for interval in intervals]).tolist()
    made = log([7, 8], entries, ends)
    last = len(intervals) - 1
    leaves = [CountedSpan(edge, 0, edge, edge + 1) for edge in range(last)]
    everything = Event(name="all", facts=("instructions",), domains=(Domain.JIT, Domain.OPENMP), meaning="")
    whole = sum(entry[2] * (3, 2)[entry[1]] for interval in intervals[1:] for entry in interval)
    assert count(sums(made), leaves, EDGES, [everything], MAIN).value.sum() == whole
    assert count(sums(made), [CountedSpan(0, 0, 0, last)], EDGES, [everything], MAIN).value.sum() == whole
    assert count_kernels(sums(made), leaves, EDGES, [INSTRUCTIONS]).value.sum() == whole


def test_starts_go_context_after_context() -> None:
    assert starts_of(log([7, 8], [], [0])).tolist() == [0x1000, 0x2000, 0x1000, 0x2000]


def test_kernels_of_one_name_are_one() -> None:
    """Ordinals and template arguments tell copies apart within a process, but not from one process to the next."""
    conv = "jit_brgemm_kernel_t"
    first, second = (Kernel(Domain.JIT, "jit", conv, f"{conv}.{n}", 0x1000 * n) for n in (1, 2))
    elsewhere = Kernel(Domain.TORCH, "libtorch_cpu.so", conv, None, 0x9000)
    becomes, kernels = merged([first, elsewhere, SPIN, second])
    assert becomes.tolist() == [0, 1, 2, 0]
    assert kernels == [Kernel(Domain.JIT, "jit", conv), elsewhere, SPIN]


def test_events_that_are_not_by_kernel_are_only_summed() -> None:
    made = log([7], [(0, 0, 1)], [0, 1])
    by_kernel = count_kernels(sums(made), [CountedSpan(0, 0, 0, 1)], EDGES, [MEMORY, INSTRUCTIONS])
    assert rows(by_kernel, "event", "value") == [(1, 3)]


def test_facts_of_an_event_are_added_up_by_kernel_too() -> None:
    """2 loads and 1 store a time, and 3 instructions that weigh nothing in it."""
    accesses = Event(name="accesses", facts=("loads", "stores"), by_kernel=True, meaning="")
    by_kernel = count_kernels(sums(log([7], [(0, 0, 5)], [0, 1])), [CountedSpan(0, 0, 0, 1)], EDGES, [accesses])
    assert by_kernel.value.tolist() == [15]


def test_code_of_another_purpose_is_another_kernel() -> None:
    one, other = (Kernel(domain, "libmkl.so", "gemm") for domain in (Domain.TORCH, Domain.OTHER))
    assert merged([one, other])[0].tolist() == [0, 1]


def test_what_telling_progress_takes_is_in_nobodys_counts() -> None:
    """Between the log's edges 1 and 2 the user was told something: the span from edge 0 to edge 2 begins at 0."""
    made = log([7], [(0, 0, 1), (0, 0, 10), (0, 0, 100), (0, 0, 1000)], [1, 2, 3, 4])
    edges = np.array([0, 2, 3])
    spans = [CountedSpan(0, 0, 0, 1), CountedSpan(1, 0, 1, 2), CountedSpan(2, 0, 0, 2)]
    quiet = sums(made, [2])
    assert count(quiet, spans, edges, [INSTRUCTIONS], MAIN).value.tolist() == [30, 3000, 3030]
    assert count_kernels(quiet, spans, edges, [INSTRUCTIONS]).value.tolist() == [30, 3000, 3030]


@given(
    entries=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 9)), max_size=40),
    edges=st.integers(1, 8),
    part=st.integers(1, 50),
)
def test_a_log_comes_to_the_same_in_parts_of_any_size(
    entries: list[tuple[int, int, int]], edges: int, part: int
) -> None:
    ends = [len(entries) * (edge + 1) // edges for edge in range(edges)]
    made, whole = log([7, 8], entries, ends), accounting.PART
    together = sums(made)
    accounting.PART = part  # type: ignore[misc]
    try:
        in_parts = sums(made)
    finally:
        accounting.PART = whole  # type: ignore[misc]
    for name in ("step", "thread", "kernel", "steps"):
        assert getattr(in_parts, name).tolist() == getattr(together, name).tolist(), name
    for apart, whole_fact in zip(in_parts.facts, together.facts, strict=True):
        assert of_rows(apart, in_parts) == of_rows(whole_fact, together)
    instructions = sum((3, 2)[block] * times for _, block, times in entries)
    assert sum(of_rows(together.facts[Fact.INSTRUCTIONS], together)) == instructions


def of_rows(fact: Column, made: Sums) -> list[int]:
    """Of all intervals."""
    rows, _ = made.rows_of(made.steps)
    return [int(fact.at(np.array([which]))[0]) for which in made.which[rows].tolist()]


def test_what_is_done_again_is_added_up_once() -> None:
    """By whichever thread of the two that add up, in whatever part of the log, and in whatever order."""
    steps = [[(0, 0, 5), (0, 0, 7), (0, 1, 1)], [(0, 0, 7), (0, 1, 1), (0, 0, 5)], [(0, 0, 12)]]
    entries = [entry for step in steps * 100 for entry in step]
    ends = np.cumsum([len(step) for step in steps * 100]).tolist()
    accounting.PART, whole = 10, accounting.PART  # type: ignore[misc]
    try:
        made = sums(log([7], entries, ends))
    finally:
        accounting.PART = whole  # type: ignore[misc]
    assert [fact.rows for fact in made.facts] == [3] * len(made.facts), "twelve times at once is another thing"
    assert of_rows(made.facts[Fact.INSTRUCTIONS], made) == [36, 2, 36, 2, 36] * 100


@given(
    entries=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 9)), max_size=40),
    spans=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)).map(sorted), max_size=12),
    at_once=st.integers(1, 20),
)
def test_kernels_are_the_same_however_many_rows_are_looked_at_at_once(
    entries: list[tuple[int, int, int]], spans: list[list[int]], at_once: int
) -> None:
    made = sums(log([7, 8], entries, [len(entries) * (edge + 1) // 9 for edge in range(9)]))
    wanted = [CountedSpan(number, 0, *edges) for number, edges in enumerate(spans)]
    together, whole = count_kernels(made, wanted, EDGES, [INSTRUCTIONS, MEMORY]), span_counts.ROWS
    span_counts.ROWS = at_once  # type: ignore[misc]
    try:
        apart = count_kernels(made, wanted, EDGES, [INSTRUCTIONS, MEMORY])
    finally:
        span_counts.ROWS = whole  # type: ignore[misc]
    columns = ("span", "thread", "kernel", "event", "value")
    assert rows(apart, *columns) == rows(together, *columns)


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(1, 100)), max_size=60),
    st.lists(st.lists(st.integers(0, 8), min_size=2, max_size=2).map(sorted), max_size=8),
)
def test_counts_of_a_span_are_the_same_alone(entries: list[tuple[int, int, int]], spans: list[list[int]]) -> None:
    made = sums(log([7, 8], entries, [len(entries) * (edge + 1) // 9 for edge in range(9)]))
    wanted = [CountedSpan(number, 0, *edges) for number, edges in enumerate(spans)]
    together = count(made, wanted, EDGES, [INSTRUCTIONS, MEMORY], MAIN)
    alone = [count(made, [span], EDGES, [INSTRUCTIONS, MEMORY], MAIN) for span in wanted]
    assert together.value.tolist() == [value for one in alone for value in one.value.tolist()]


def test_amounts_of_any_size_are_kept() -> None:
    """Columns are of the smallest type that holds them; sums of them, and of columns of other types, are not."""
    made = sums(log([7], [(0, 0, 80), (0, 0, 1 << 40)], [1, 2]))
    assert {part.values.itemsize for fact in made.facts for part in fact.parts} == {1, 8}
    both = [CountedSpan(0, 0, 0, 1)]
    assert count(made, both, np.array([0, 1]), [INSTRUCTIONS, MEMORY], MAIN).value.tolist() == [3 << 40, 3 << 40]
    assert count_kernels(made, both, np.array([0, 1]), [INSTRUCTIONS]).value.tolist() == [3 << 40]


STEPS = [[(0, 0, 5), (0, 1, 1)], [(1, 0, 7)], [], [(0, 0, 2), (1, 0, 2), (0, 0, 3)]]


@given(
    intervals=st.lists(st.sampled_from(STEPS), min_size=9, max_size=9),
    spans=st.lists(st.lists(st.integers(0, 8), min_size=2, max_size=2).map(sorted), max_size=8),
    nobodys=st.sets(st.integers(1, 8), max_size=3),
    at_once=st.sampled_from([1, 3, span_counts.ROWS]),
)
def test_whatever_is_done_again_is_counted_each_time(
    intervals: list[list[tuple[int, int, int]]], spans: list[list[int]], nobodys: set[int], at_once: int
) -> None:
    """By the sums as one entry after the other gives them."""
    ends = np.cumsum([len(interval) for interval in intervals]).tolist()
    made = sums(log([7, 8], [entry for interval in intervals for entry in interval], ends), sorted(nobodys))
    wanted = [CountedSpan(number, 0, *edges) for number, edges in enumerate(spans)]
    of_kernels: dict[tuple[int, ...], int] = {}
    of_threads = {(span.span, thread): 0 for span in wanted for thread in (0, 1)}
    for span in wanted:
        for number in set(range(span.begin_edge + 1, span.end_edge + 1)) - nobodys:
            for thread, block, times in intervals[number]:
                done = (3, 2)[block] * times
                of_kernels[span.span, thread, block] = of_kernels.get((span.span, thread, block), 0) + done
                of_threads[span.span, thread] += done if block == 0 else 0
    whole, span_counts.ROWS = span_counts.ROWS, at_once  # type: ignore[misc]
    try:
        by_kernel = count_kernels(made, wanted, EDGES, [INSTRUCTIONS])
        by_thread = count(made, wanted, EDGES, [INSTRUCTIONS], MAIN)
    finally:
        span_counts.ROWS = whole  # type: ignore[misc]
    assert {row[:3]: row[3] for row in rows(by_kernel, "span", "thread", "kernel", "value")} == of_kernels
    assert {row[:2]: row[2] for row in rows(by_thread, "span", "thread", "value")} == of_threads
