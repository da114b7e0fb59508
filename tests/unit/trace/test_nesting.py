from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwprof.trace.nesting import END_OF_TIME, Ints, Lane, edges, innermost, nested_events, outer_first, parents

intervals = st.lists(st.tuples(st.integers(0, 15), st.integers(0, 6)), max_size=14)


def prepare(slices: list[tuple[int, int]]) -> tuple[Ints, Ints]:
    begin_ns = np.array([begin for begin, _ in slices], np.int64)
    begin, end = edges(begin_ns, begin_ns + np.array([duration for _, duration in slices], np.int64))
    order = outer_first(begin, end)
    return begin[order], end[order]


class Replay:
    """What the trace processor does with begin and end events, a stack for each track."""

    def __init__(self) -> None:
        self.lanes: list[Lane] = []
        self.stacks: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.last: dict[int, int] = defaultdict(int)
        self.seen: list[tuple[int, int]] = []
        self.depths: list[int] = []

    def window(self, begin: Ints, end: Ints, until: int) -> None:
        number = 0
        while len(begin) or number < len(self.lanes):
            if number == len(self.lanes):
                self.lanes.append(Lane())
            lane, stack = self.lanes[number], self.stacks[number]
            admitted = lane.admit(begin, end)
            here = list(zip(begin[admitted].tolist(), end[admitted].tolist(), strict=True))
            events = lane.events(begin[admitted], end[admitted], until)
            for row, is_begin, edge in zip(events.row, events.is_begin, events.edge, strict=True):
                assert self.last[number] <= edge < until, "events come in order, and none too early"
                self.last[number] = int(edge)
                if is_begin:
                    assert edge == here[row][0]
                    assert events.depth[row] == len(stack)
                    stack.append(here[row])
                else:
                    closed = stack.pop()
                    assert closed[1] == edge, "an end closes the slice that was opened last"
                    self.seen.append(closed)
            begin, end, number = begin[~admitted], end[~admitted], number + 1


@settings(deadline=None)
@given(intervals, st.lists(st.integers(0, 22), max_size=3))
def test_every_slice_is_there_once_with_its_own_end(slices: list[tuple[int, int]], cuts: list[int]) -> None:
    begin, end = prepare(slices)
    replay, since = Replay(), 0
    for until in [*(4 * cut for cut in sorted(cuts)), END_OF_TIME]:
        now = (begin >= since) & (begin < until)
        replay.window(begin[now], end[now], until)
        since = until
    assert sorted(replay.seen) == sorted(zip(begin.tolist(), end.tolist(), strict=True))
    assert not any(replay.stacks.values())


def overlap(first: tuple[int, int], second: tuple[int, int]) -> bool:
    (first, second) = sorted([first, second], key=lambda pair: (pair[0], -pair[1]))
    return second[0] < first[1] < second[1]


@settings(deadline=None)
@given(intervals)
def test_a_second_track_only_where_slices_overlap(slices: list[tuple[int, int]]) -> None:
    begin, end = prepare(slices)
    pairs = list(zip(begin.tolist(), end.tolist(), strict=True))
    any_overlap = any(overlap(one, two) for place, one in enumerate(pairs) for two in pairs[:place])
    assert Lane().admit(begin, end).all() == (not any_overlap)


@settings(deadline=None)
@given(intervals, st.lists(st.integers(0, 100), max_size=10))
def test_parents_and_innermost_are_what_contains(slices: list[tuple[int, int]], moments: list[int]) -> None:
    begin, end = prepare(slices)
    admitted = Lane().admit(begin, end)
    begin, end = begin[admitted], end[admitted]
    around = parents(nested_events(begin, end).depth)
    for row, parent in enumerate(around):
        containing = [other for other in range(row) if end[other] >= end[row]]
        assert parent == max(containing, default=-1)
    found = innermost(begin, end, np.array(moments, np.int64))
    for moment, row in zip(moments, found, strict=True):
        assert row == max((other for other in range(len(begin)) if begin[other] <= moment < end[other]), default=-1)


def test_equal_times() -> None:
    """[0,5] [5,5] [5,9]: the end of the first, then the third, with the one without length inside of it."""
    begin, end = prepare([(0, 5), (5, 0), (5, 4)])
    assert Lane().admit(begin, end).all()
    events = nested_events(begin, end)
    assert [(int(row), bool(kind)) for row, kind in zip(events.row, events.is_begin, strict=True)] == [
        (0, True),
        (0, False),
        (1, True),
        (2, True),
        (2, False),
        (1, False),
    ]


def test_a_slice_without_length_stays_in_the_parent_that_ends_there() -> None:
    begin_ns, end_ns = np.array([0, 5, 5]), np.array([5, 5, 8])
    begin, end = edges(begin_ns, end_ns, np.array([False, True, False]))
    order = outer_first(begin, end)
    assert nested_events(begin[order], end[order]).depth.tolist() == [0, 1, 0]
    assert order.tolist() == [0, 1, 2]


def test_a_slice_that_ends_before_it_begins_has_no_length() -> None:
    begin, end = edges(np.array([9]), np.array([3]))
    assert (begin[0], end[0]) == (36, 37)


@pytest.mark.parametrize(
    ("slices", "fit"),
    [
        ([(0, 10), (2, 10), (5, 12), (6, 9)], [True, True, False, True]),  # one ends with the one around it
        ([(0, 10), (2, 5), (3, 6), (5, 7)], [True, True, False, True]),  # one begins where another ended
    ],
)
def test_beside_an_overlap_slices_may_touch(slices: list[tuple[int, int]], fit: list[bool]) -> None:
    begin, end = np.array(slices, dtype=np.int64).T
    assert Lane().admit(begin, end).tolist() == fit
