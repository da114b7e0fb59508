"""How iterations rotate, and which collectors a pass gets."""

from __future__ import annotations

from itertools import groupby, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.collector.contract import Availability
from hwprof.collector.declaration import Declaration, Place
from hwprof.collector.registry import Surveyed
from hwprof.errors import UsageError
from hwprof.run.notes import NoteKind
from hwprof.run.roles import Role
from hwprof.session.plan import (
    IDLE_S,
    PassPlan,
    joint_sets,
    schedule,
    that_fit,
    uncounted_notes,
    uncounted_sets,
    with_bare,
)
from hwprof.session.planner import TRACE_ITERATIONS, plan_passes
from tests.support.fake_collectors import Bystander, surveyed


class Made(Bystander):
    """A collector for planning only."""

    def __init__(self, name: str, place: Place, passes: set[str], wants_idle: bool = False) -> None:
        self.name, self.place, self.passes, self.wants_idle = name, place, frozenset(passes), wants_idle
        self.role = Role.COUNTER if name == "perf" else Role.OTHER


def long_pass(iterations: int, enough_s: float | None) -> PassPlan:
    return PassPlan(name="measure", iterations=iterations, warmup=2, in_process=(), external=(), enough_s=enough_s)


@pytest.mark.parametrize(
    ("once_s", "sets", "number"),
    [
        (0.03, 1, 20),
        (1.0, 1, 20),
        (2.5, 1, 8),
        (1.6, 1, 12),
        (60.0, 1, 8),
        (60.0, 7, 14),
        (60.0, 30, 20),
        (None, 1, 20),
    ],
)
def test_iterations_that_take_long_are_fewer_though_every_event_set_has_its_turns(
    once_s: float | None, sets: int, number: int
) -> None:
    assert that_fit(long_pass(20, 20.0), once_s, 100, sets) == number
    assert that_fit(long_pass(20, None), once_s, 100, sets) == 20


@pytest.mark.parametrize(("calls", "number"), [(0, 5), (100, 5), (4_000, 5), (4_001, 4), (19_000, 1), (1_000_000, 1)])
def test_of_a_trace_whole_iterations_are_left_out(calls: int, number: int) -> None:
    """Whoever says how many gets no more of them either: what a viewer cannot show helps nobody."""
    for iterations in (None, 20):
        _, trace = plan_passes([], ["measure", "trace"], iterations=iterations, warmup=2)
        assert that_fit(trace, 0.01, calls, 0) == number


@pytest.mark.parametrize(
    ("calls", "sets", "number"),
    [(0, 1, 20), (5_000, 1, 20), (5_001, 1, 19), (10_000, 1, 10), (10**6, 1, 8), (10**6, 7, 14)],
)
def test_a_model_of_thousands_of_layers_is_measured_less_often(calls: int, sets: int, number: int) -> None:
    """Unless the user says how many times."""
    measure, asked = (plan_passes([], ["measure"], iterations=given, warmup=2)[0] for given in (None, 20))
    assert that_fit(measure, 0.01, calls, sets) == number
    assert that_fit(asked, 0.01, calls, sets) == 20


def test_only_who_says_how_many_gets_all_of_them() -> None:
    passes = ["measure", "trace"]
    measure, trace = plan_passes([], passes, iterations=None, warmup=2)
    assert (measure.iterations, trace.iterations) == (20, 5)
    assert measure.enough_s == 20 and trace.enough_s == 10
    assert all(one.enough_s is None for one in plan_passes([], passes, iterations=20, warmup=2))


def for_some_time(time_s: float) -> PassPlan:
    measure, trace = plan_passes([], ["measure", "trace"], iterations=None, warmup=2, time_s=time_s)
    assert trace.time_s is None and trace.enough_s == 10
    return measure


@given(st.integers(3, 200), st.integers(0, 3000))
def test_bare_iterations_lie_evenly_among_those_that_watch(watched: int, further: int) -> None:
    records = with_bare(schedule(2, watched, 1, alternate=True)[2:], further)
    assert [record.index for record in records] == list(range(2, 2 + len(records)))
    bare = sum(record.bare for record in records)
    assert len(records) - bare == watched and further - 1 <= bare <= max(further, 10)
    runs = [len(list(group)) for is_bare, group in groupby(records, key=lambda record: record.bare) if is_bare]
    assert not runs or max(runs) <= 2 * (bare // (2 * watched) + 1)


@pytest.mark.parametrize(
    ("passes", "iterations", "warmup", "told"),
    [
        (["measure"], 5, 2, "--iterations says how many"),
        (["trace"], None, 2, "--passes has no measure"),
        (["measure"], None, 0, "needs a warm-up"),
    ],
)
@pytest.mark.parametrize(("option", "given"), [("--time", {"time_s": 1.0}), ("--precision", {"precision": 0.01})])
def test_a_time_for_a_pass_without_any_is_refused(
    passes: list[str], iterations: int | None, warmup: int, told: str, option: str, given: dict[str, float]
) -> None:
    with pytest.raises(UsageError, match=f"{option} .*{told}"):
        plan_passes([], passes, iterations=iterations, warmup=warmup, **given)  # type: ignore[arg-type]


def test_without_a_word_of_the_user_the_measure_pass_goes_on_until_layers_are_known() -> None:
    plans = plan_passes([], ["measure", "trace"], iterations=None, warmup=2)
    assert [(plan.iterations, plan.time_s, plan.precision, plan.enough_s) for plan in plans] == [
        (20, None, 0.02, 20.0),
        (5, None, None, 10.0),
    ]
    for iterations, warmup in ((20, 2), (None, 0)):
        (plan,) = plan_passes([], ["measure"], iterations=iterations, warmup=warmup)
        assert plan.precision is None
    (plan,) = plan_passes([], ["measure"], iterations=None, warmup=2, time_s=60.0)
    assert (plan.time_s, plan.precision) == (60.0, None)


def test_a_precision_has_as_much_time_as_iterations_have_by_default() -> None:
    plans = plan_passes([], ["measure", "trace"], iterations=None, warmup=2, precision=0.01)
    assert [(plan.time_s, plan.precision) for plan in plans] == [(20.0, 0.01), (None, None)]
    (plan,) = plan_passes([], ["measure"], iterations=None, warmup=2, precision=0.01, time_s=60.0)
    assert (plan.time_s, plan.precision) == (60.0, 0.01)


def test_timed_and_counted_iterations_alternate_after_warm_up() -> None:
    records = schedule(2, 20, 1, alternate=True)
    assert [record.warmup for record in records] == [True, True] + [False] * 20
    assert [record.index for record in records[2:] if record.layers_counted] == [5, 8, 11, 14, 17, 20]
    assert [record.index for record in records] == list(range(22))


@given(st.integers(20, 200), st.integers(1, 8))
def test_an_event_sets_turns_are_not_all_even_or_odd(iterations: int, sets: int) -> None:
    """A model of even period does one half of its work in even iterations only."""
    records = [record for record in schedule(0, iterations, sets, alternate=True) if record.layers_counted]
    assert len({record.index for record in records}) == len(records)
    for number in range(sets):
        turns = [record.index for record in records if record.event_set == number]
        alike = sum((after - before) % 2 == 0 for before, after in pairwise(turns))
        assert alike == 0 or 2 * len(records) > iterations, turns


def test_one_in_ten_at_uneven_distances() -> None:
    counted = [record.index for record in schedule(0, 60, 1, alternate=True) if record.layers_counted]
    assert counted == [9, 18, 29, 38, 49, 58]


@given(st.integers(1, 100))
def test_what_counting_costs_is_known_from_six_iterations_where_two_thirds_stay_timed(iterations: int) -> None:
    counted = sum(record.layers_counted for record in schedule(0, iterations, 1, alternate=True))
    assert counted >= min(6, iterations // 3)
    assert iterations < 4 or iterations - counted >= iterations / 2


def test_without_counters_layers_are_only_timed() -> None:
    assert all(record.event_set is None and not record.layers_counted for record in schedule(1, 3, 0, alternate=True))


def test_one_iteration_in_five_more_is_bare_in_pairs_that_leave_the_rest_as_it_was_planned() -> None:
    planned = schedule(2, 20, 3, alternate=True)[2:]
    records = with_bare(planned)
    assert [record.index for record in records] == list(range(2, 26))
    assert [place for place, record in enumerate(records) if record.bare] == [5, 6, 17, 18]
    assert all(record.warmup and not record.layers_counted for record in records if record.bare)
    kinds = [(record.event_set, record.layers_counted) for record in records if not record.bare]
    assert kinds == [(record.event_set, record.layers_counted) for record in planned]


@pytest.mark.parametrize(("iterations", "bare"), [(1, 0), (9, 0), (10, 2), (19, 2), (20, 4), (1000, 10)])
def test_few_iterations_have_no_bare_ones_and_many_enough(iterations: int, bare: int) -> None:
    planned = schedule(0, iterations, 0, alternate=True)
    assert sum(record.bare for record in with_bare(planned)) == bare


def test_only_the_measure_pass_has_bare_iterations() -> None:
    measure, trace = plan_passes([], ["measure", "trace"], iterations=None, warmup=2)
    assert measure.bare_too and not trace.bare_too


def test_the_trace_pass_counts_in_every_iteration() -> None:
    assert all(record.layers_counted for record in schedule(0, 3, 2, alternate=False))


@given(st.integers(0, 3), st.integers(1, 40), st.integers(1, 8), st.booleans())
def test_every_set_has_its_turn_where_there_is_room(warmup: int, iterations: int, sets: int, alternate: bool) -> None:
    measured = schedule(warmup, iterations, sets, alternate=alternate)[warmup:]
    assert len(measured) == iterations
    assert len(uncounted_sets(measured, sets)) == max(0, sets - iterations)
    if alternate and iterations > sets:
        assert not all(record.layers_counted for record in measured)


@pytest.mark.parametrize(
    ("iterations", "sets", "turns"),
    [
        (20, 1, [6]),
        (6, 1, [2]),
        (20, 4, [2, 2, 2, 2]),
        (20, 6, [2, 2, 2, 2, 1, 1]),
        (100, 4, [3, 3, 2, 2]),
        (4, 3, [1, 1, 1]),
    ],
)
def test_sets_are_counted_twice_where_half_of_the_iterations_stay_timed(
    iterations: int, sets: int, turns: list[int]
) -> None:
    counted = [record.event_set for record in schedule(0, iterations, sets, alternate=True) if record.layers_counted]
    assert [counted.count(number) for number in range(sets)] == turns


def test_counters_read_together_go_through_their_own_sets_in_turn() -> None:
    assert joint_sets([[["a"], ["b"], ["c"]], [["x"], ["y"]]]) == [["a", "x"], ["b", "y"], ["c", "x"]]
    assert joint_sets([]) == []
    records = schedule(0, 2, 3, alternate=False)
    assert uncounted_sets(records, 3) == [2]
    assert uncounted_sets(records, 2) == []


def test_collectors_go_where_they_belong_and_the_others_say_why() -> None:
    broken = Declaration(name="broken", summary="", implementation="", place=Place.EXTERNAL)
    found = [
        surveyed(Made("perf", Place.IN_PROCESS, {"measure", "trace"})),
        surveyed(Made("rapl", Place.EXTERNAL, {"measure"}, True), Availability.no("no powercap", "modprobe")),
        surveyed(Made("memory", Place.EXTERNAL, {"measure", "trace"})),
        Surveyed(broken, None, Availability.no("it is broken: boom")),
    ]
    measure, trace = plan_passes(found, ["measure", "trace"], iterations=10, warmup=2, off={"memory"})
    assert [planned.name for planned in measure.in_process] == ["perf"]
    assert measure.external == ()
    assert [(record.name, record.state) for record in measure.left_out] == [
        ("rapl", "unavailable"),
        ("memory", "off"),
        ("broken", "unavailable"),
    ]
    assert measure.left_out[0].remedy == "modprobe"
    assert (measure.alternate, trace.alternate) == (True, False)
    assert (measure.iterations, trace.iterations) == (10, TRACE_ITERATIONS)
    assert measure.idle_s == 0


def test_energy_wants_an_idle_moment() -> None:
    rapl = surveyed(Made("rapl", Place.EXTERNAL, {"measure"}, True))
    assert plan_passes([rapl], ["measure"], iterations=1, warmup=0)[0].idle_s == IDLE_S


def test_unknown_and_repeated_passes_are_refused() -> None:
    for passes in (["mesure"], ["measure", "measure"]):
        with pytest.raises(UsageError):
            plan_passes([], passes, iterations=1, warmup=0)


def test_sets_without_a_turn_are_told_with_what_helps() -> None:
    records = schedule(1, 2, 3, alternate=False)
    sets = [["cycles"], ["branches"], ["loads", "stores"]]
    (few,) = uncounted_notes("measure", records, sets)
    assert (few.kind, few.subject, few.remedy) == (NoteKind.INCOMPLETE, "loads, stores", "--iterations")
    (turns,) = uncounted_notes("trace", records, sets)
    assert turns.kind is NoteKind.INCOMPLETE and turns.text.startswith("1 of 3 event sets")
    assert uncounted_notes("trace", schedule(1, 3, 3, alternate=False), sets) == []
