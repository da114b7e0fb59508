"""Sets of events that fit the counters, for made-up processors and any wish."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from hwprof.hardware.catalogue import Event, Match, Processor
from hwprof.hardware.countable import Countable
from hwprof.hardware.packing import UNKNOWN_PROCESSOR, Budget, EventSet, Packing, pack
from hwprof.hardware.pmu import Code


def countable(
    name: str,
    *,
    pmu: str | None = "cpu",
    counters: int = 1,
    only: tuple[int, ...] = (),
    leader: str | None = None,
    fixed: bool = False,
    modifier: str = "",
    unqualified: str = "",
) -> Countable:
    event = Event(
        name=unqualified or name,
        meaning=name,
        kind="hardware" if pmu else "software",
        counters=counters,
        only=only,
        leader=leader,
    )
    user_only = modifier == ":u"
    return Countable(name + modifier, event, Code(4, 0), name, pmu, fixed=fixed, exclude_kernel=user_only)


CYCLES, INSTRUCTIONS = countable("cycles", fixed=True), countable("instructions", fixed=True)
SLOTS = countable("slots", counters=0, fixed=True)
RETIRING, BACKEND = (countable(f"topdown-{name}", counters=0, leader="slots") for name in ("retiring", "be-bound"))
CLOCK = countable("task-clock", pmu=None)


def plain(*names: str) -> list[Countable]:
    return [countable(name) for name in names]


def names(packing: Packing) -> list[tuple[str, ...]]:
    return [event_set.names for event_set in packing.sets]


def processor(**fields: object) -> Processor:
    made = {"name": "x", "vendor": "x", "matches": (Match(family=1),), "pmu": "cpu", "general_counters": 4, **fields}
    return Processor(**made)  # type: ignore[arg-type]


def test_the_budget_is_the_processors_with_or_without_hyper_threading() -> None:
    skylake = processor(general_counters_without_smt=8)
    assert Budget.of(skylake, smt=True) == Budget(4)
    assert Budget.of(skylake, smt=False) == Budget(8)
    assert Budget.of(processor(general_counters=6), smt=False) == Budget(6)
    assert Budget.of(None, smt=False) == Budget(UNKNOWN_PROCESSOR) == Budget(4)


def test_fixed_counters_are_free_and_serve_an_event_once() -> None:
    assert Budget(1).holds([CYCLES, INSTRUCTIONS, *plain("a")])
    assert not Budget(1).holds([CYCLES, *plain("a", "b")])
    again = countable("cycles", fixed=True, modifier=":u")
    assert Budget(2).used([CYCLES, again, *plain("a")]) == 2
    assert not Budget(1).holds([CYCLES, again, *plain("a")])


def test_an_event_whose_own_counter_is_taken_needs_a_general_one() -> None:
    taken = Budget(2, frozenset({"cycles"}))
    assert taken.holds([CYCLES, INSTRUCTIONS, *plain("a")])
    assert not taken.holds([CYCLES, INSTRUCTIONS, *plain("a", "b")])
    assert taken.used([CYCLES, INSTRUCTIONS]) == 1


def test_an_event_of_two_counters_takes_an_even_one_and_the_next() -> None:
    pairs = [countable(name, counters=2) for name in "abc"]
    assert Budget(6).holds(pairs)
    assert Budget(5).holds([*pairs[:2], *plain("x")])
    assert not Budget(5).holds(pairs)
    assert not Budget(6).holds([*pairs, *plain("x")])
    assert Budget(3).holds([pairs[0], countable("last", only=(2,))])
    assert not Budget(3).holds([pairs[0], countable("first", only=(0,))]), "1 and 2 are no pair"


def test_events_restricted_to_some_counters() -> None:
    first, low = countable("first", only=(0,)), countable("low", only=(0, 1))
    assert Budget(4).holds([low, first])
    assert not Budget(4).holds([low, first, countable("second", only=(1,))])
    assert not Budget(4).holds([countable("high", only=(4, 5))])
    assert not Budget(2).holds([countable("pair", counters=2), low])


def restricted(general: int) -> st.SearchStrategy[list[Countable]]:
    one = st.sets(st.integers(0, general - 1)).map(lambda only: countable(f"r{sorted(only)}", only=tuple(sorted(only))))
    return st.lists(one, max_size=5)


@given(st.integers(1, 5).flatmap(lambda general: st.tuples(st.just(general), restricted(general))))
def test_holding_is_a_matching(case: tuple[int, list[Countable]]) -> None:
    """Against trying out every assignment of events to counters."""
    general, events = case
    possible = any(
        all(not event.event.only or place in event.event.only for event, place in zip(events, places, strict=True))
        for places in permutations(range(general), len(events))
    )
    assert Budget(general).holds(events) == possible


def test_cycles_and_instructions_are_in_every_set_and_software_events_too() -> None:
    packing = pack([*plain("a", "b", "c"), CYCLES, INSTRUCTIONS, CLOCK], [], {"cpu": Budget(2)})
    assert [set(found) for found in names(packing)] == [
        {"a", "b", "cycles", "instructions", "task-clock"},
        {"c", "cycles", "instructions", "task-clock"},
    ]
    assert all(found[-1] == "task-clock" for found in names(packing))


def test_a_bundle_too_large_for_company_goes_without() -> None:
    cycles, instructions = plain("cycles", "instructions")
    packing = pack([cycles, instructions, *plain("a", "b", "c", "d")], [("a", "b", "c", "d")], {"cpu": Budget(4)})
    assert [set(found) for found in names(packing)] == [{"a", "b", "c", "d"}, {"cycles", "instructions"}]


def test_top_down_events_follow_their_leader_and_take_no_general_counter() -> None:
    events = [*plain("a", "b"), RETIRING, CYCLES, BACKEND, SLOTS]
    packing = pack(events, [("a", "b", "topdown-retiring", "topdown-be-bound", "slots")], {"cpu": Budget(2)})
    assert names(packing) == [("slots", "topdown-retiring", "topdown-be-bound", "a", "b", "cycles")]


def test_a_led_event_brings_its_leader_along() -> None:
    packing = pack([RETIRING, SLOTS], [("topdown-retiring",)], {"cpu": Budget(1)})
    assert names(packing) == [("slots", "topdown-retiring")]


def test_groups_with_different_leaders_are_apart() -> None:
    events = [SLOTS, RETIRING, countable("mem-loads-aux"), countable("mem-loads", leader="mem-loads-aux")]
    packing = pack(events, [("topdown-retiring", "slots"), ("mem-loads", "mem-loads-aux")], {"cpu": Budget(8)})
    assert sorted(names(packing)) == [("mem-loads-aux", "mem-loads"), ("slots", "topdown-retiring")]


def test_metrics_that_share_events_share_a_set() -> None:
    events = plain("a", "b", "c", "d", "e")
    packing = pack(events, [("a", "b"), ("c", "d"), ("b", "c"), ("d", "e")], {"cpu": Budget(4)})
    assert [set(found) for found in names(packing)] == [{"a", "b", "c", "d"}, {"d", "e"}]


def test_a_metric_goes_where_it_adds_least() -> None:
    bundles = [("a", "b", "c"), ("d", "e", "f"), ("f", "x")]
    packing = pack(plain(*"abcdefx"), bundles, {"cpu": Budget(5)})
    assert [set(found) for found in names(packing)] == [{"a", "b", "c"}, {"d", "e", "f", "x"}]


def test_the_most_wanted_is_counted_first() -> None:
    packing = pack(plain(*"abcdef"), [("a",), ("b", "c", "d"), ("e", "f")], {"cpu": Budget(3)})
    assert [set(found) for found in names(packing)] == [{"a", "e", "f"}, {"b", "c", "d"}]


def test_a_bundle_that_fits_nowhere_is_torn_and_told() -> None:
    packing = pack(plain(*"abcde"), [tuple("abcde"), ("a", "b")], {"cpu": Budget(4)})
    assert packing.torn == (tuple("abcde"),)
    assert [set(found) for found in names(packing)] == [set("abcd"), {"e"}]


def test_what_needs_more_counters_than_there_are_is_told() -> None:
    pair = countable("pair", counters=2)
    packing = pack([pair, *plain("a")], [("a", "pair")], {"cpu": Budget(1)})
    assert packing.oversized == (pair,)
    assert (names(packing), packing.torn) == ([("a",)], ())


def test_software_events_alone_are_a_set() -> None:
    assert names(pack([CLOCK], [], {None: Budget(4)})) == [("task-clock",)]
    assert pack([], [], {}).sets == ()


def test_each_kind_of_core_has_counters_of_its_own() -> None:
    """A metric's events of both kinds are in one set; software events in a group that no kind of core holds up."""
    core, atom = (
        [countable(f"{pmu}/{name}/", pmu=pmu, unqualified=name) for name in ("cycles", "a", "b")]
        for pmu in ("cpu_core", "cpu_atom")
    )
    bundles = [("cpu_core/a/", "cpu_atom/a/"), ("cpu_core/b/", "cpu_atom/b/")]
    packing = pack([*core, *atom, CLOCK], bundles, {"cpu_core": Budget(3), "cpu_atom": Budget(2)})
    assert [
        {part.pmu: [event.event.name for event in part.events] for part in found.parts} for found in packing.sets
    ] == [
        {None: ["task-clock"], "cpu_core": ["cycles", "a"], "cpu_atom": ["cycles", "a"]},
        {None: ["task-clock"], "cpu_core": ["cycles", "b"], "cpu_atom": ["cycles", "b"]},
    ]
    assert [part.pmu for part in packing.sets[0].parts] == [None, "cpu_core", "cpu_atom"]


@st.composite
def wishes(draw: st.DrawFn) -> tuple[list[Countable], list[tuple[str, ...]], dict[str | None, Budget]]:
    pmus = draw(st.sampled_from([["cpu"], ["cpu_core", "cpu_atom"]]))
    budgets: dict[str | None, Budget] = {pmu: Budget(draw(st.integers(1, 8))) for pmu in pmus}
    events = []
    for pmu in pmus:
        fixed = draw(st.booleans())
        companions = draw(st.lists(st.sampled_from(["cycles", "instructions"]), unique=True))
        events += [countable(f"{pmu}/{name}/", pmu=pmu, fixed=fixed, unqualified=name) for name in companions]
        events.append(countable(f"{pmu}/slots/", pmu=pmu, counters=0, unqualified="slots"))
        for number in range(draw(st.integers(0, 10))):
            kind = draw(st.sampled_from(["plain", "plain", "pair", "only", "led"]))
            only = tuple(sorted(draw(st.sets(st.integers(0, 7), min_size=1)))) if kind == "only" else ()
            counters = {"pair": 2, "led": 0}.get(kind, 1)
            leader = "slots" if kind == "led" else None
            name = f"e{number}"
            made = countable(f"{pmu}/{name}/", pmu=pmu, counters=counters, only=only, leader=leader, unqualified=name)
            events.append(made)
    bundle = st.lists(st.sampled_from([event.name for event in events]), min_size=1, max_size=8, unique=True)
    bundles = [tuple(one) for one in draw(st.lists(bundle, max_size=6))]
    return [*events, *([CLOCK] if draw(st.booleans()) else [])], bundles, budgets


def set_fits(event_set: EventSet, budgets: dict[str | None, Budget]) -> bool:
    return all(
        budgets[part.pmu].holds([event for event in part.events if event.kind == "hardware"])
        for part in event_set.parts
        if part.pmu is not None
    )


@given(wishes())
def test_any_wish_is_packed(wish: tuple[list[Countable], list[tuple[str, ...]], dict[str | None, Budget]]) -> None:
    events, bundles, budgets = wish
    packing = pack(events, bundles, budgets)
    by_name = {event.name: event for event in events}
    impossible = {event.name for event in packing.oversized}

    def fits(chosen: set[str]) -> bool:
        found = [by_name[name] for name in chosen]
        return all(budget.holds([event for event in found if event.pmu == pmu]) for pmu, budget in budgets.items())

    # every set fits, and has no event twice
    assert all(set_fits(event_set, budgets) for event_set in packing.sets)
    assert all(len(set(event_set.names)) == len(event_set.names) for event_set in packing.sets)
    # every event is somewhere, unless no counters could ever hold it
    assert {name for event_set in packing.sets for name in event_set.names} == by_name.keys() - impossible
    assert all(not fits({name}) for name in impossible)
    # a bundle is whole in one set, or fits none
    for bundle in bundles:
        whole = any(set(bundle) <= set(event_set.names) for event_set in packing.sets)
        assert whole == fits(set(bundle))
        assert (bundle in packing.torn) <= (not whole)
    # cycles and instructions of each kind of core are in every set that has room
    for event_set in packing.sets:
        for event in events:
            if event.event.name in ("cycles", "instructions") and event.name not in event_set.names:
                assert not fits({event.name, *event_set.names} - {"task-clock"})
    # a leader leads those that ask for it
    for part in (part for event_set in packing.sets for part in event_set.parts):
        led = [number for number, event in enumerate(part.events) if event.event.leader]
        assert not led or (part.events[0].event.name == "slots" and led == list(range(1, len(led) + 1)))
    # software events are in every set
    assert all(("task-clock" in event_set.names) == ("task-clock" in by_name) for event_set in packing.sets)


@given(st.integers(1, 6), st.lists(st.integers(1, 6), min_size=1, max_size=8))
def test_sets_are_few(general: int, sizes: list[int]) -> None:
    """Bundles of plain events that share nothing: at most twice the sets that the counters would need at the least,
    which is what filling the first that fits promises."""
    bundles = [tuple(f"{number}.{one}" for one in range(size)) for number, size in enumerate(sizes) if size <= general]
    packing = pack(plain(*(name for bundle in bundles for name in bundle)), bundles, {"cpu": Budget(general)})
    least = -(-sum(map(len, bundles)) // general)
    assert len(packing.sets) <= max(1, 2 * least) if bundles else not packing.sets
