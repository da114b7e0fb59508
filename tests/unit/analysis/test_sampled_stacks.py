"""Which Python stack led to a sample: only where nothing can have changed since somebody looked."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis.python_stacks import Looks, python_stacks
from hwprof.analysis.sampled_stacks import SampledStacks
from hwprof.run.schema import TABLES
from tests.support.looks import frames
from tests.support.small_tables import MAIN, WORKER, layers, record, spans

HELPER = 12
LAYERS = layers([("net", "Net", False), ("a", "Conv2d", True)])
RECORD = msgspec.structs.replace(record([(0, False, 0, True), (1, False, 0, True)], [["cycles"]]), main_tid=MAIN)
Look = tuple[int, int]
"""A time and the line met at it, on the thread that calls the model."""

Call = tuple[str, int, int]
"""An operator, begin and end."""


def switches(rows: Sequence[tuple[int, int, int, bool, str | None]]) -> pl.DataFrame:
    """(thread, off its processor since, until, preempted, reason)."""
    names = ["tid", "out_ns", "in_ns", "preempted", "reason"]
    found = [dict(zip(names, row, strict=True)) | {"pass": "trace", "pid": MAIN} for row in rows]
    return pl.DataFrame(found, schema=TABLES["switches"])


def met(looks: list[Look], tid: int = MAIN) -> pl.DataFrame:
    """As looks that meet ``f`` at these lines, the last one until 1000."""
    ends = [*looks, (1000, 0)]
    return frames([(tid, 0, "f", line, at, after) for (at, line), (after, _) in pairwise(ends)])


def told(
    asked: list[tuple[int, int]],
    calls: list[Call],
    table: pl.DataFrame,
    *,
    away: Sequence[tuple[int, int, int, bool, str | None]] = (),
    looks: Looks | None = None,
    kind: str = "op",
) -> list[int | None]:
    """The line of each (time, thread); the calls are the model's own, in one iteration each 500 ns."""
    rows = [(1 + n, None, n, "iteration", "", 500 * n, 500 * n + 500) for n in range(2)]
    rows += [(10 + n, None, n, "layer", "net", 500 * n, 500 * n + 500) for n in range(2)]
    rows += [(20 + n, None, begin // 500, kind, name, begin, end) for n, (name, begin, end) in enumerate(calls)]
    known = looks or Looks()
    python = python_stacks(table, known)
    lines = dict(python.stacks.select("stack", "line").iter_rows())
    stacks = SampledStacks(python, known, RECORD, spans(rows), LAYERS, switches(away))
    samples = pl.DataFrame(asked, schema={"time_ns": pl.Int64, "tid": pl.Int32}, orient="row")
    return [None if stack is None else lines[stack] for stack in stacks.at(samples)]


MM = [("mm", 10 * n, 10 * n + 6) for n in range(20)]
TANH = [("tanh", 10 * n + 6, 10 * n + 9) for n in range(20)]


def test_calls_of_an_operator_have_the_line_that_looks_at_it_met_however_short_they_are() -> None:
    calls = [*MM, *TANH]
    looks = [(3, 6), (47, 7), (83, 6), (127, 7), (192, 6)]
    for tid in (MAIN, WORKER):
        asked = [(begin + 1, tid) for _, begin, _ in calls]
        assert told(asked, calls, met(looks)) == [6] * 20 + [7] * 20


def test_where_looks_do_not_agree_calls_have_their_own_or_that_of_the_same_call_in_other_iterations() -> None:
    calls = [("mm", 10, 20), ("mm", 30, 40), ("mm", 510, 520), ("mm", 530, 540), ("mm", 550, 560)]
    asked = [(begin + 1, MAIN) for _, begin, _ in calls]
    assert told(asked, calls, met([(15, 1), (35, 2)])) == [1, 2, None, None, None], "one look is no agreement"
    more = [("mm", at, at + 10) for begin in (1010, 1510) for at in (begin, begin + 20)]
    looks = [(15, 1), (35, 2), (1015, 1), (1035, 2), (1515, 1), (1535, 3)]
    assert told(asked, calls + more, met(looks))[2:4] == [1, None]


def test_a_look_at_a_call_s_edge_tells_nothing() -> None:
    calls = [("mm", 10, 20), ("tanh", 20, 30)]
    asked = [(12, MAIN), (22, MAIN)]
    assert told(asked, calls, met([(18, 1)]), looks=Looks(error_ns=1)) == [1, None]
    assert told(asked, calls, met([(18, 1)]), looks=Looks(error_ns=3)) == [None, None]


def test_a_thread_without_python_works_for_the_calling_one_in_operators_only() -> None:
    calls = [("mm", 10, 20)]
    table = met([(5, 1), (15, 2), (25, 3)])
    assert told([(7, MAIN), (12, MAIN), (27, MAIN)], calls, table) == [1, 2, 3]
    assert told([(7, WORKER), (12, WORKER), (27, WORKER)], calls, table) == [None, 2, None]


def test_between_operators_time_tells_as_far_as_the_next_operator() -> None:
    calls = [("mm", 10, 20), ("mm", 100, 110)]
    table = met([(30, 4), (60, 5), (105, 6)])
    asked = [(at, MAIN) for at in (5, 25, 45, 59, 60, 99, 120)]
    assert told(asked, calls, table) == [None, 4, 4, 4, 5, 5, None]
    late = Looks(1e8)  # by 10 ns
    assert told(asked, calls, table, looks=late) == [None, 4, 4, 5, 5, 5, None]


def test_a_stack_that_goes_on_tells_also_where_its_first_look_may_lie_before_the_edge() -> None:
    """Looks at 20 and 60 may be off by 5; where the stack stays for 3 distances of looks, others met it there."""
    calls = [("mm", 10, 18), ("mm", 100, 110)]
    table = met([(20, 4), (60, 5)])
    asked = [(45, MAIN), (80, MAIN)]
    near = Looks(1e8, error_ns=5)  # 10 ns apart
    assert told(asked, calls, table, looks=near) == [4, 5]
    rare = Looks(5e7, error_ns=5)
    assert told(asked, calls, table, looks=rare) == [5, 5], "of 20 to 60 no second look is sure"


def test_what_a_thread_does_after_a_sleep_is_not_what_it_slept_in() -> None:
    table = pl.concat([met([(10, 1), (40, 2)]), met([(10, 8), (40, 9)], HELPER)])
    for tid, first, second in ((MAIN, 1, 2), (HELPER, 8, 9)):
        asked = [(20, tid), (60, tid)]
        assert told(asked, [], table) == [first, second]
        assert told(asked, [], table, away=[(tid, 30, 50, False, "lock")]) == [first, None]
        assert told(asked, [], table, away=[(tid, 30, 50, False, "GIL")]) == [first, second]
        assert told(asked, [], table, away=[(tid, 30, 50, True, None)]) == [first, second]
        assert told(asked, [], table, away=[(tid, 30, 50, False, "barrier")]) == [first, second]
        assert told(asked, [], table, away=[(tid, 30, 50, False, "stopped")]) == [first, second], "by who looks"


def test_a_sleep_within_an_operator_changes_nothing() -> None:
    calls = [("mm", 10, 60)]
    away = [(MAIN, 30, 50, False, "lock")]
    assert told([(55, MAIN)], calls, met([(20, 1)]), away=away) == [1]


def test_without_operators_leaf_layers_stand_for_them() -> None:
    calls = [("a", 10, 20), ("a", 30, 40)]
    assert told([(12, WORKER), (35, MAIN), (45, WORKER)], calls, met([(15, 1)]), kind="layer") == [1, 1, None]


def test_nobody_looked() -> None:
    assert told([(12, MAIN)], MM, frames([])) == [None]
    assert told([], MM, met([(15, 1)])) == []


@given(
    st.lists(st.tuples(st.integers(1, 9), st.sampled_from(["mm", "tanh"]), st.integers(1, 2)), min_size=1, max_size=30),
    st.lists(st.integers(0, 300), unique=True, max_size=20),
)
def test_in_calls_it_is_never_another_line_than_the_true_one(work: list[tuple[int, str, int]], at: list[int]) -> None:
    """Where an operator is called by one line."""
    calls: list[tuple[str, int, int]] = []
    now = 0
    for length, name, line in work:
        calls.append((f"{name}{line}", now, now + length))
        now += length + 1
    true = {time: line for (_, begin, end), (_, _, line) in zip(calls, work, strict=True) for time in range(begin, end)}
    looks = [(time, true[time]) for time in sorted(at) if time in true]
    distinct = [look for before, look in pairwise([(0, 0), *looks]) if look[1] != before[1]]
    found = told([(time, MAIN) for time in true], calls, met(distinct))
    assert all(line in (None, true[time]) for time, line in zip(true, found, strict=True))
