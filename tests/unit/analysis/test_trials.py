"""How much a remedy changes a time, and how sure that is."""

from __future__ import annotations

import math
import random
import statistics

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis.actions import actions, together
from hwprof.analysis.findings.facts import Finding
from hwprof.analysis.trials import LEAST_GENERATIONS, Pair, change, is_enough, spread, undisturbed
from hwprof.run.trials import Change, Difference, Trial, Trials, merged


def test_the_interval_is_students_of_the_ratios_logarithms() -> None:
    found = change([Pair(80.0, 100.0), Pair(81.0, 100.0), Pair(79.0, 100.0)])
    assert found is not None
    logs = [math.log(one) for one in (0.80, 0.81, 0.79)]
    half = 4.303 * statistics.stdev(logs) / math.sqrt(3)
    assert found.value == pytest.approx(math.exp(statistics.fmean(logs)) - 1)
    assert (found.low, found.high) == pytest.approx(
        tuple(math.expm1(statistics.fmean(logs) + d) for d in (-half, half))
    )
    assert found.helps and not found.harms
    assert change([Pair(80.0, 100.0)]) is None and change([Pair(0.0, 1.0), Pair(1.0, 1.0)]) is None


@given(st.lists(st.tuples(st.floats(1, 1e12), st.floats(1, 1e12)), min_size=2, max_size=12), st.floats(0.01, 100))
def test_it_is_the_same_in_any_unit_and_within_its_interval(pairs: list[tuple[float, float]], scale: float) -> None:
    one = change([Pair(*pair) for pair in pairs])
    other = change([Pair(scale * with_ns, scale * without_ns) for with_ns, without_ns in pairs])
    assert one is not None and other is not None
    assert one.low <= one.value <= one.high or one.value == pytest.approx(one.high)
    assert other.value == pytest.approx(one.value, rel=1e-6, abs=1e-6)


def test_the_interval_holds_the_truth_95_times_in_100() -> None:
    chance = random.Random(1)
    held = 0
    for _ in range(1000):
        pairs = [Pair(0.9 * math.exp(chance.gauss(0, 0.02)), math.exp(chance.gauss(0, 0.02))) for _ in range(4)]
        found = change(pairs)
        assert found is not None
        held += found.low <= -0.1 <= found.high
    assert 930 <= held <= 970


def test_when_it_is_known_well_enough() -> None:
    narrow, wide = Change(value=-0.2, low=-0.215, high=-0.185), Change(value=-0.05, low=-0.09, high=-0.01)
    worse = Change(value=0.5, low=0.3, high=0.7)
    assert is_enough(narrow, 3) and not is_enough(narrow, 2)
    assert not is_enough(wide, 5) and not is_enough(None, 5)
    assert is_enough(worse, 3)


def test_what_others_do_only_makes_it_longer() -> None:
    assert undisturbed([[10.0, 10.1], [55.0, 10.2]]) == 10.0
    assert undisturbed([[7.0]]) == 7.0
    assert undisturbed([[10.0, 10.3, 55.0, 10.2, 10.1], [10.4, 10.2, 70.0, 80.0]]) == 10.2, "it is no kind of call"


def test_calls_that_are_long_and_short_in_turn_both_count() -> None:
    """Each turn begins with either."""
    turns = [[10.0, 50.0, 11.0, 52.0, 10.0], [51.0, 10.0, 50.0, 10.0], [50.0, 10.0]]
    assert undisturbed(turns) == 30.0
    faster = [[10.0, 5.0, 11.0, 5.0], [5.0, 10.0, 5.0, 10.0, 5.5]]
    assert undisturbed(faster) == 7.5, "who makes the long ones short is seen"


@given(st.lists(st.lists(st.floats(1.0, 1e9), min_size=2, max_size=20), min_size=1, max_size=6))
def test_it_lies_between_the_shortest_and_the_longest(turns: list[list[float]]) -> None:
    times = [ns for turn in turns for ns in turn]
    assert min(times) * (1 - 1e-9) <= undisturbed(turns) <= max(times) * (1 + 1e-9)


def finding(rule: str, high: float, remedies: tuple[str, ...] = (), remedy: str = "by hand") -> Finding:
    return Finding(rule, f"title of {rule}", "evidence", "meaning", remedy, 0.0, high, remedies=remedies)


def trial(*names: str, value: float = 0.0, half: float = 0.01, exact: bool = True) -> Trial:
    changed = Change(value=value, low=value - half, high=value + half)
    return Trial(remedies=list(names), titles=[f"the {name}" for name in names], inference=changed, exact=exact)


FOUND = [
    finding("layouts", 0.2, ("channels_last",)),
    finding("memory", 0.15, ("keep_memory", "tcmalloc", "jemalloc")),
    finding("pooling", 0.1, ("channels_last",)),
    finding("nms", 0.3),
]


def test_without_trials_what_could_win_most_is_first_and_causes_of_one_remedy_are_one_action() -> None:
    found = actions(FOUND, None)
    assert [one.title for one in found] == ["channels_last", "by hand", "keep freed memory"]
    assert [one.rule for one in found[0].causes] == ["layouts", "pooling"]
    assert found[0].gain_high == pytest.approx(0.3)


def test_what_others_were_in_the_way_of_comes_after_what_has_a_figure() -> None:
    noisy = trial("channels_last", value=-0.5)
    noisy = msgspec.structs.replace(noisy, inference=Change(value=-0.5, low=-1.0, high=3.0))
    rows = [noisy, msgspec.structs.replace(trial("keep_memory"), inference=Change(value=-0.25, low=-0.6, high=0.6))]
    found = actions(FOUND, Trials(created="", seconds=1.0, inference_ns=None, rows=rows))
    assert [one.title for one in found] == ["by hand", "the keep_memory", "the channels_last"]


def test_what_is_not_certain_is_sorted_by_what_it_brought_too() -> None:
    """And not by what its cause takes; beside what nobody tried by what that could bring at most."""
    brought = {"keep_memory": -0.141, "tcmalloc": -0.13, "jemalloc": -0.145, "channels_last": -0.15, "compile": -0.46}
    rows = [trial(name, value=value, half=0.2) for name, value in brought.items()]
    small = finding("pooling", 0.2, ("channels_last", "compile"))
    found = [finding("memory", 0.39, ("keep_memory", "tcmalloc", "jemalloc", "compile")), small, finding("nms", 0.142)]
    ordered = [one.title for one in actions(found, Trials(created="", seconds=1.0, inference_ns=None, rows=rows))]
    names = ["compile", "channels_last", "jemalloc", "by hand", "keep_memory", "tcmalloc"]
    assert ordered == [name if name == "by hand" else f"the {name}" for name in names]


def test_a_noisier_trial_takes_the_place_of_no_better_one() -> None:
    noisy = Change(value=-0.5, low=-1.0, high=3.0)
    first = Trials(created="a", seconds=1.0, inference_ns=None, rows=[trial("x", value=-0.2), trial("y", value=-0.1)])
    rows = [msgspec.structs.replace(trial("x"), inference=noisy), trial("y", value=-0.3)]
    found = {one.remedies[0]: one for one in merged(first, msgspec.structs.replace(first, created="b", rows=rows)).rows}
    assert found["x"].inference == first.rows[0].inference and found["x"].earlier == "a"
    assert found["y"].inference == rows[1].inference and found["y"].earlier is None


def test_what_was_tried_is_sorted_by_what_it_brought() -> None:
    rows = [trial("tcmalloc", value=-0.12), trial("keep_memory", value=-0.06), trial("jemalloc", value=0.6)]
    rows += [trial("channels_last", value=0.005), trial("tcmalloc", "keep_memory", value=-0.15)]
    trials = Trials(created="", seconds=1.0, inference_ns=None, rows=rows)
    found = actions(FOUND, trials)
    names = ["the tcmalloc", "the keep_memory", "by hand", "the channels_last", "the jemalloc"]
    assert [one.title for one in found] == names
    assert found[0].tried is rows[0] and found[2].tried is None
    assert together(trials) is rows[-1]
    assert trials.best is rows[-1] and trials.best_inexact is None
    no_better = Trials(
        created="", seconds=1.0, inference_ns=None, rows=[*rows[:-1], trial("tcmalloc", "x", value=-0.125)]
    )
    assert no_better.best is rows[0] and together(no_better) is None, "one is as good as two, as far as anybody knows"


def test_what_changes_results_is_no_first_choice() -> None:
    rows = [trial("bfloat16", value=-0.5, exact=False), trial("channels_last", value=-0.2)]
    trials = Trials(created="", seconds=1.0, inference_ns=None, rows=rows)
    assert trials.best is rows[1] and trials.best_inexact is rows[0] and together(trials) is None
    slower = Trials(
        created="", seconds=1.0, inference_ns=None, rows=[trial("bfloat16", value=-0.1, exact=False), rows[1]]
    )
    assert slower.best_inexact is None


def test_what_is_not_certain_is_neither_a_gain_nor_in_vain() -> None:
    unsure = trial("channels_last", value=-0.15, half=0.16)
    assert unsure.inference is not None and not unsure.inference.helps and not unsure.inference.in_vain
    trials = Trials(created="", seconds=1.0, inference_ns=None, rows=[unsure, trial("keep_memory", value=0.001)])
    found = actions(FOUND, trials)
    assert {one.title for one in found[:2]} == {"by hand", "the channels_last"} and found[2].title == "the keep_memory"
    assert trials.best is None


def test_what_gives_other_results_is_not_what_to_adopt() -> None:
    wrong = trial("flush_denormals", value=-0.9)
    wrongs = [
        msgspec.structs.replace(wrong, outputs=Difference(largest=0.5, tensors=1)),
        msgspec.structs.replace(wrong, outputs=Difference(largest=0.0, tensors=1, unequal=1)),
    ]
    right = msgspec.structs.replace(trial("channels_last", value=-0.2), outputs=Difference(largest=1e-5, tensors=2))
    for one in wrongs:
        found = Trials(created="", seconds=1.0, inference_ns=None, rows=[one, right])
        assert found.best is right and found.best_inexact is one


def test_of_those_that_are_as_good_the_one_that_takes_no_memory() -> None:
    hungry = msgspec.structs.replace(trial("keep_memory", value=-0.21), peak_bytes=250, peak_without_bytes=100)
    modest = msgspec.structs.replace(trial("tcmalloc", value=-0.205), peak_bytes=102, peak_without_bytes=100)
    assert Trials(created="", seconds=1.0, inference_ns=None, rows=[hungry, modest]).best is modest


def test_later_trials_stand_beside_earlier_ones() -> None:
    ended = Trial(remedies=["channels_last"], titles=["channels_last"])  # before there were two of each
    first = Trials(
        created="a", seconds=1.0, inference_ns=None, rows=[trial("channels_last", value=-0.2), trial("x", value=0.1)]
    )
    second = Trials(created="b", seconds=1.0, inference_ns=None, rows=[trial("x", value=-0.3), ended])
    found = merged(first, second)
    assert [(one.remedies[0], one.inference and one.inference.value, one.earlier) for one in found.rows] == [
        ("x", -0.3, None),
        ("channels_last", -0.2, "a"),
    ]
    assert found.best is found.rows[0] and found.rows[1].works
    assert found.created == "b" and merged(None, second) is second
    third = merged(found, Trials(created="c", seconds=1.0, inference_ns=None, rows=[trial("y")]))
    assert {one.remedies[0]: one.earlier for one in third.rows} == {"x": "b", "channels_last": "a", "y": None}


def test_what_fails_now_is_not_recommended_for_an_earlier_success() -> None:
    rows = [trial("channels_last", "x", value=-0.4), trial("channels_last", value=-0.2), trial("x", value=-0.1)]
    first = Trials(created="a", seconds=1.0, inference_ns=None, rows=rows)
    failed = Trial(remedies=["channels_last"], titles=["channels_last"], reason="it died")
    found = merged(first, Trials(created="b", seconds=1.0, inference_ns=None, rows=[failed]))
    assert [(one.remedies, one.reason) for one in found.rows] == [(["channels_last"], "it died"), (["x"], None)]
    assert found.best is found.rows[1] and not found.rows[0].works
    titles = [one.title for one in actions(FOUND, found)]
    assert titles == ["the x", "by hand", "keep freed memory"], "nor is it on the first screen"


@pytest.mark.parametrize(
    "change",
    [{"low": 0.2}, {"high": float("inf")}, {"value": float("nan")}, {"low": -5.0}, {"high": -0.9}, {"high": 1e308}],
    ids=str,
)
def test_what_is_no_interval_is_refused(change: dict[str, float]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"value": 0.0, "low": -0.1, "high": 0.1} | change, Change)


@pytest.mark.parametrize(
    "change",
    [
        *({"titles": []}, {"remedies": []}, {"peak_without_bytes": 0}, {"calls": -1}, {"remedies": ["a" * 99]}),
        *({"outputs": {"largest": 0.0, "tensors": -5}}, {"outputs": {"largest": -1.0, "tensors": 1}}),
        {"remedies": ["a"] * 99, "titles": ["a"] * 99},
    ],
    ids=str,
)
def test_what_is_no_trial_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"remedies": ["a"], "titles": ["A"], **change}, Trial)


@pytest.mark.parametrize(
    "change",
    [
        *({"seconds": 1e308}, {"seconds": -5.0}, {"others_share": 1e300}, {"others_share": -5.0}),
        {"inference_ns": 1 << 60},
        {"rows": [{"remedies": ["a"], "titles": ["A"]}] * 2},
    ],
    ids=str,
)
def test_what_no_trial_finds_is_refused(change: dict[str, object]) -> None:
    whole = {"created": "", "seconds": 1.0, "inference_ns": None, "rows": []}
    assert msgspec.convert(whole, Trials).rows == []
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(whole | change, Trials)


def test_generations_that_have_nothing_in_common_have_an_interval_all_the_same() -> None:
    found = change([Pair(1.0, 1.0), Pair(1e300, 1.0)])
    assert found is not None and found.high == pytest.approx(1e9) and found.low == -1


@pytest.mark.parametrize(
    ("tried", "left"),
    [
        ([], False),
        ([trial("compile", value=-0.3)], False),
        ([trial("compile", value=0.3)], True),
        ([Trial(remedies=["compile"], titles=["torch.compile"], reason="was not ready within 150 s")], True),
    ],
    ids=["untried", "helps", "harms", "failed"],
)
def test_where_no_remedy_helps_what_is_done_by_hand_is_left(tried: list[Trial], left: bool) -> None:
    small = finding("dispatch", 0.6, ("compile",))._replace(by_hand="a larger batch")
    found = actions([small], Trials(created="", seconds=1.0, inference_ns=None, rows=tried))
    by_hand = [one for one in found if one.title == "a larger batch"]
    assert bool(by_hand) is left and all(one.remedy is None and one.causes == [small] for one in by_hand)


def test_a_remedy_that_was_asked_for_by_name_has_a_row_without_a_finding() -> None:
    found = actions([], Trials(created="", seconds=1.0, inference_ns=None, rows=[trial("threads=1", value=-0.5)]))
    assert [(one.title, one.causes) for one in found] == [("the threads=1", [])]


@pytest.mark.parametrize(("remedies", "deviation"), [(3, 0.01), (6, 0.02)])
def test_who_stops_when_it_is_narrow_is_not_fooled_by_chance(remedies: int, deviation: float) -> None:
    """Remedies without effect: the intervals of all of them together hold 0 at least as often as they should."""
    chance = random.Random(3)
    held = 0
    for _ in range(200):
        pairs: list[list[Pair]] = [[] for _ in range(remedies)]
        going = set(range(remedies))
        for generation in range(1, 11):
            without = math.exp(chance.gauss(0, deviation / math.sqrt(2)))
            for one in going:
                pairs[one].append(Pair(math.exp(chance.gauss(0, deviation / math.sqrt(2))), without))
            if generation >= LEAST_GENERATIONS:
                together_ = spread(pairs)
                going = {one for one in going if not is_enough(change(pairs[one], together_), len(pairs[one]))}
        found = [change(one, spread(pairs)) for one in pairs]
        held += sum(one is not None and one.low <= 0 <= one.high for one in found)
    assert held / (200 * remedies) >= 0.94


def test_of_nothing_there_is_no_spread() -> None:
    assert spread([]) is None and spread([[Pair(1.0, 1.0)]]) is None
