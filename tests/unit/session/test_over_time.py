"""A pass that goes on for some time takes that time, whatever its first iterations took."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from hwprof.run.manifest import IterationRecord
from hwprof.session import over_time
from hwprof.session.extent import Extent
from hwprof.session.messages import Reached
from hwprof.session.plan import ENOUGH_CALLS, FEWEST, MOST_BARE, PassPlan, schedule, with_bare
from hwprof.session.turn import Turn

PLAN = PassPlan(name="measure", iterations=20, warmup=2, in_process=(), external=(), time_s=60.0, bare_too=True)


class Pass:
    """Iterations that take as long as ``takes_s`` says of each, by a clock that nothing else moves."""

    def __init__(
        self, plan: PassPlan, once_s: float, takes_s: Callable[[int], float], calls: int = 100, sets: int = 1
    ) -> None:
        self.now_s = 0.0
        self.done: list[IterationRecord] = []
        self.pieces: list[Sequence[IterationRecord]] = []
        for piece in over_time.iterations(plan, once_s, calls, sets, lambda: self.now_s):
            self.pieces.append(piece)
            for record in piece:
                if len(self.done) >= FEWEST and self.now_s > (plan.time_s or 0.0):  # as the worker does
                    return
                self.now_s += takes_s(len(self.done))
                self.done.append(record)


@pytest.mark.parametrize("once_s", [0.001, 0.05, 0.5, 5.0, 500.0])
@pytest.mark.parametrize("takes_s", [0.001, 0.05, 0.5])
def test_the_time_is_used_whatever_the_warm_up_took(once_s: float, takes_s: float) -> None:
    """Its last iteration compiled something, or did a part of the work."""
    found = Pass(PLAN, once_s, lambda index: takes_s)
    assert 60 <= found.now_s <= 60 + 2 * takes_s
    assert [record.index for record in found.done] == list(range(2, 2 + len(found.done)))


def test_the_first_ones_may_be_slow_too() -> None:
    found = Pass(PLAN, 10.0, lambda index: 10.0 if index < 3 else 0.05)
    assert found.now_s >= 60 and len(found.done) > 500


@pytest.mark.parametrize(("time_s", "sets", "number"), [(1.0, 1, 3), (0.001, 1, 3), (1.0, 7, 3)])
def test_three_are_done_however_long_they_take(time_s: float, sets: int, number: int) -> None:
    plan = msgspec.structs.replace(PLAN, time_s=time_s)
    assert len(Pass(plan, 5.0, lambda index: 5.0, sets=sets).done) == number


@pytest.mark.parametrize("once_s", [0.0005, 0.005, 0.05])
def test_bare_ones_are_as_many_as_elsewhere_and_lie_all_over(once_s: float) -> None:
    """Of iterations with 5 ms, of which the warm-up told anything: ten in all."""
    found = Pass(PLAN, once_s, lambda index: 0.005, calls=10)
    bare = [index for index, record in enumerate(found.done) if record.bare]
    assert len(bare) == 10
    assert bare[0] < len(found.done) / 5 and bare[-1] > 4 * len(found.done) / 5


@pytest.mark.parametrize(("calls", "watched"), [(0, 12_000), (10, 12_000), (200, 1_250), (10**7, 6)])
def test_of_very_many_iterations_some_watch_their_layers(calls: int, watched: int) -> None:
    found = Pass(PLAN, 0.005, lambda index: 0.005, calls=calls)
    assert len(found.done) == pytest.approx(12_000, abs=3)
    assert sum(not record.bare for record in found.done) == pytest.approx(watched, abs=20)


def test_each_event_set_has_its_turns() -> None:
    found = Pass(PLAN, 0.05, lambda index: 0.05, sets=3)
    turns = [record.event_set for record in found.done if record.layers_counted]
    assert {0, 1, 2} == set(turns) and max(map(turns.count, range(3))) - min(map(turns.count, range(3))) <= 2


@pytest.mark.parametrize("calls", [1, 10, 1000])
def test_what_is_done_in_no_time_ends_before(calls: int) -> None:
    """An hour of a model of a millisecond: each iteration that is kept takes memory."""
    found = Pass(msgspec.structs.replace(PLAN, time_s=3600.0), 0.001, lambda index: 0.001, calls=calls)
    assert over_time.MOST <= len(found.done) <= 1.01 * over_time.MOST and found.now_s < 200


def further(plan: PassPlan, each_s: float, calls: int = 100, reach: float = 1.0) -> list[IterationRecord]:
    """After the planned ones, which took so long each, where so many times as many would tell."""
    planned = with_bare(schedule(plan.warmup, plan.iterations, 1, alternate=True)[plan.warmup :])
    pieces = list(
        over_time.further(plan, planned, calls, 1, lambda: each_s * len(planned), lambda times: times >= reach)
    )
    return [*planned, *(record for piece in pieces for record in piece)]


UNTIL_KNOWN = msgspec.structs.replace(PLAN, time_s=None, precision=0.02, enough_s=20.0)


@pytest.mark.parametrize(("each_s", "number"), [(0.001, 200), (0.2, 100), (0.5, 40), (0.9, 24), (2.0, 24)])
def test_until_layers_are_known_there_are_as_many_as_fit_and_ten_times_as_many_at_most(
    each_s: float, number: int
) -> None:
    found = further(UNTIL_KNOWN, each_s)
    assert number <= len(found) <= number + 10, "with bare ones"
    assert [record.index for record in found] == list(range(2, 2 + len(found)))
    assert sum(record.bare for record in found) <= MOST_BARE
    assert all(record.event_set == 0 for record in found if record.layers_counted)


def test_where_nobody_wants_to_know_none_come_after_the_planned_ones() -> None:
    assert len(further(msgspec.structs.replace(UNTIL_KNOWN, precision=None), 0.1)) == 24


def test_very_many_layers_are_watched_no_more_often_than_elsewhere() -> None:
    found = further(UNTIL_KNOWN, 0.01, calls=1_000)
    assert sum(not record.bare for record in found) <= ENOUGH_CALLS // 1_000


@pytest.mark.parametrize(
    ("each_s", "reach", "number"),
    [(0.1, 8.0, 200), (0.1, 9.0, 28), (0.5, 1.6, 40), (0.5, 2.0, 25), (0.7, 2.0, 24), (0.001, 99.0, 200)],
)
def test_few_come_where_they_would_not_tell_enough(each_s: float, reach: float, number: int) -> None:
    """Of 0.1 s 200 fit into what there is, of 0.5 s 40: as many as take half a second come all the same."""
    assert number <= len(further(UNTIL_KNOWN, each_s, reach=reach)) <= number + 10, "with bare ones"


@pytest.mark.parametrize(("done", "elapsed_s", "expected"), [(1, 0.1, 600), (100, 40.0, 150), (150, 61.0, 150)])
def test_who_waits_hears_how_many_are_expected_by_those_that_are_done(
    done: int, elapsed_s: float, expected: int
) -> None:
    """An hour's were planned once, by its first minute: "10,399 of 19,950" at its end."""
    plan = msgspec.structs.replace(PLAN, time_s=60.0)
    with Path(os.devnull).open() as nothing:
        extent = Extent(plan, Turn(nothing.fileno()), lambda: int(elapsed_s * 1e9))
    extent.begin(0)
    assert extent.reached(done) == Reached(done, expected)
