"""Differencing of readings, against a model that knows every counter at every moment."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.shared.counting.group_reads import PythonGroupReads
from collectors.shared.counting.readings import ENTER, FULL, GAP, LEAVE, Readings
from hwprof.collector.contract import CountedSpan

MAIN, ACTIVE, IDLE = 100, 101, 102  # thread numbers, and file descriptors as well

Row = tuple[int, int, int, int, int, int, int]


@dataclass
class World:
    """Counters of threads: each has enabled and running time and one value for each of ``events``."""

    events: int = 2
    words: dict[int, list[int]] = field(default_factory=dict)
    short: set[int] = field(default_factory=set)  # whose reads the kernel cuts short

    def read(self, fd: int, size: int) -> bytes:
        assert size == 8 * (3 + self.events)
        return b"" if fd in self.short else struct.pack(f"={size // 8}Q", self.events, *self.words[fd])

    def work(self, fd: int, amount: int) -> None:
        self.words[fd] = [
            word + amount * factor for word, factor in zip(self.words[fd], range(1, 3 + self.events), strict=True)
        ]


def rows_of(readings: Readings, spans: list[CountedSpan]) -> list[Row]:
    columns, _ = readings.difference(spans)
    arrays = (
        columns.iteration,
        columns.span,
        columns.tid,
        columns.event,
        columns.value,
        columns.enabled_ns,
        columns.running_ns,
    )
    return list(zip(*(array.tolist() for array in arrays), strict=True))


def a_course(active: int = 2) -> tuple[World, Readings]:
    world = World(words={fd: [0] * 4 for fd in (MAIN, ACTIVE, IDLE)})
    readings = Readings(PythonGroupReads(world.read))
    readings.begin_interval((0, 1), (MAIN, ACTIVE, IDLE), (MAIN, ACTIVE, IDLE), active)
    return world, readings


def test_a_span_has_a_row_for_each_thread_and_event() -> None:
    world, readings = a_course()
    readings.reader(FULL)()
    world.work(MAIN, 10)
    world.work(ACTIVE, 1)
    readings.reader(FULL)()
    assert rows_of(readings, [CountedSpan(7, 3, 0, 1)]) == [
        # iteration, span, tid, event, value, enabled, running
        (3, 7, MAIN, 0, 30, 10, 20),
        (3, 7, MAIN, 1, 40, 10, 20),
        (3, 7, ACTIVE, 0, 3, 1, 2),
        (3, 7, ACTIVE, 1, 4, 1, 2),
        (3, 7, IDLE, 0, 0, 0, 0),
        (3, 7, IDLE, 1, 0, 0, 0),
    ]


def test_what_an_idle_thread_did_is_in_the_span_around_the_layers() -> None:
    world, readings = a_course()
    readings.reader(FULL)()
    readings.reader(LEAVE)()
    world.work(IDLE, 5)
    readings.reader(LEAVE)()
    readings.reader(FULL)()
    layer, stage = CountedSpan(0, 0, 1, 2), CountedSpan(1, 0, 0, 3)
    assert {row[2] for row in rows_of(readings, [layer])} == {MAIN, ACTIVE}
    assert (0, 1, IDLE, 0, 15, 5, 10) in rows_of(readings, [stage])


def test_at_a_gap_workers_hold_their_last_values() -> None:
    world, readings = a_course()
    readings.reader(LEAVE)()
    world.work(MAIN, 1)
    world.work(ACTIVE, 1)  # a worker that spins a little longer
    readings.reader(GAP)()
    world.work(ACTIVE, 2)
    readings.reader(LEAVE)()
    spans = [CountedSpan(0, 0, 0, 1), CountedSpan(1, 0, 1, 2)]
    values = {(row[1], row[2]): row[4] for row in rows_of(readings, spans) if row[3] == 0}
    assert values == {(0, MAIN): 3, (0, ACTIVE): 0, (1, MAIN): 0, (1, ACTIVE): 9}


def test_a_gap_before_any_read_of_all_knows_the_main_thread_only() -> None:
    world, readings = a_course()
    readings.reader(GAP)()
    world.work(ACTIVE, 1)
    readings.reader(LEAVE)()
    assert {row[2] for row in rows_of(readings, [CountedSpan(0, 0, 0, 1)])} == {MAIN}


def test_spans_across_iterations_are_left_out_and_told() -> None:
    _, readings = a_course()
    readings.reader(FULL)()
    readings.begin_interval((0, 1), (MAIN,), (MAIN,), 1)
    readings.reader(FULL)()
    columns, cut = readings.difference([CountedSpan(0, 0, 0, 1), CountedSpan(1, 0, 1, 1), CountedSpan(2, 0, 1, 99)])
    assert cut == 2
    assert set(columns.span.tolist()) == {1}


def test_a_read_that_the_kernel_cut_short_is_unknown() -> None:
    world, readings = a_course()
    readings.reader(FULL)()
    world.short.add(ACTIVE)
    readings.reader(FULL)()
    assert {row[2] for row in rows_of(readings, [CountedSpan(0, 0, 0, 1)])} == {MAIN, IDLE}


def test_an_edge_that_was_not_read_any_more_has_no_span() -> None:
    _, readings = a_course()
    readings.reader(FULL)()
    columns, cut = readings.difference([CountedSpan(0, 0, 0, 1), CountedSpan(1, 0, 0, 0)])
    assert (set(columns.span.tolist()), cut) == ({1}, 1)


@pytest.mark.parametrize(
    ("running", "every_core", "expected"),
    [((60, 39), True, 100), ((60, 38), True, 98), ((60, 0), True, 60), ((60, 0), False, 100)],
)
def test_kinds_of_core_that_count_in_turn_have_their_time_in_common(
    running: tuple[int, int], every_core: bool, expected: int
) -> None:
    """A hundredth is what moving from one to another takes; where a kind has no group, nobody knows what was missed."""
    words = {MAIN: [0, 0, 0], ACTIVE: [0, 0, 0]}  # the main thread's two groups
    readings = Readings(PythonGroupReads(lambda fd, size: struct.pack("=4Q", 1, *words[fd])))
    readings.begin_interval((0, 1), (MAIN, ACTIVE), (MAIN,), 1, sizes=(1, 1), turns=(0, 1), every_core=every_core)
    readings.reader(FULL)()
    words.update({fd: [100, ran, ran] for fd, ran in zip(words, running, strict=True)})
    readings.reader(FULL)()
    rows = rows_of(readings, [CountedSpan(0, 0, 0, 1)])
    assert [row[4:] for row in rows] == [(ran, 100, expected) for ran in running]


def test_nothing_read_nothing_counted() -> None:
    columns, cut = Readings().difference([])
    assert (len(columns.span), cut) == (0, 0)
    columns, cut = Readings().difference([CountedSpan(0, 0, 0, 1)])
    assert (len(columns.span), cut) == (0, 1)


def test_a_large_pass_is_differenced_within_a_second() -> None:
    threads = tuple(range(MAIN, MAIN + 16))
    row = struct.pack("=11Q", 8, *range(10))
    readings = Readings(PythonGroupReads(lambda fd, size: row))
    spans: list[CountedSpan] = []
    for iteration in range(10):
        readings.begin_interval(tuple(range(8)), threads, threads, 16)
        leave = readings.reader(LEAVE)
        for _ in range(300):
            leave()
            leave()
            spans.append(CountedSpan(len(spans), iteration, readings.edges - 2, readings.edges - 1))
    begin = time.perf_counter()
    columns, _ = readings.difference(spans)
    assert time.perf_counter() - begin < 1
    assert len(columns.value) == 10 * 300 * 16 * 8


edges = st.lists(
    st.tuples(st.sampled_from([FULL, LEAVE, GAP, ENTER]), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1000)))),
    min_size=1,
    max_size=12,
)
intervals = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4), edges), min_size=1, max_size=4)


@settings(max_examples=150, deadline=None)
@given(intervals, st.data())
def test_every_row_is_what_the_model_says(
    course: list[tuple[int, int, list[tuple[int, list[tuple[int, int]]]]]], data: st.DataObject
) -> None:
    """For any course of edges of any kind and any work between them."""
    world = World(words={fd: [0] * 4 for fd in range(4)})
    readings = Readings(PythonGroupReads(world.read))
    known: list[dict[int, list[int]]] = []  # for each edge, the words of the threads that it knows
    home: list[int] = []
    for number, (threads, active, sequence) in enumerate(course):
        active = min(active, threads)
        readings.begin_interval((0, 1), range(threads), range(threads), active)
        held: dict[int, list[int]] = {}
        for kind, work in sequence:
            for fd, amount in work:
                world.work(fd, amount)
            readings.reader(kind)()
            if kind == GAP:
                seen = {fd: held[fd] for fd in range(1, active) if fd in held} | {0: world.words[0]}
            else:
                seen = {fd: world.words[fd] for fd in range(threads if kind == FULL else active)}
                held = seen
            known.append(seen)
            home.append(number)
    pairs = st.tuples(st.integers(0, len(known) - 1), st.integers(0, len(known) - 1)).map(sorted)
    chosen = data.draw(st.lists(pairs, max_size=20))
    spans = [CountedSpan(index, home[begin], begin, end) for index, (begin, end) in enumerate(chosen)]
    columns, cut = readings.difference(spans)
    assert cut == sum(home[span.begin_edge] != home[span.end_edge] for span in spans)
    assert sorted(rows_of(readings, spans)) == sorted(_model(spans, known, home))
    assert np.array_equal(columns.span, np.sort(columns.span))


def _model(spans: list[CountedSpan], known: list[dict[int, list[int]]], home: list[int]) -> Iterator[Row]:
    for span in spans:
        begin, end = known[span.begin_edge], known[span.end_edge]
        if home[span.begin_edge] != home[span.end_edge]:
            continue
        for tid in begin.keys() & end.keys():
            enabled, running, *values = (late - early for early, late in zip(begin[tid], end[tid], strict=True))
            for event, value in enumerate(values):
                yield span.iteration, span.span, tid, event, value, enabled, running


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([LEAVE, GAP, FULL, ENTER]), st.integers(0, 99), st.integers(0, 99)), max_size=20)
)
def test_consecutive_spans_add_up_to_the_whole(steps: list[tuple[int, int, int]]) -> None:
    """Layers and what lies between them are the whole, for the main thread and for the workers."""
    world, readings = a_course()
    readings.reader(FULL)()
    for kind, main, worker in steps:
        world.work(MAIN, main)
        world.work(ACTIVE, worker)
        readings.reader(kind)()
    readings.reader(FULL)()
    last = readings.edges - 1
    parts = rows_of(readings, [CountedSpan(edge, 0, edge, edge + 1) for edge in range(last)])
    for row in rows_of(readings, [CountedSpan(0, 0, 0, last)]):
        if row[2] != IDLE:
            assert row[4] == sum(part[4] for part in parts if part[2:4] == row[2:4])
