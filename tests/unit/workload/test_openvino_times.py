"""Times of single calls, from means that are told in whole microseconds."""

from __future__ import annotations

from hwprof.workload.runtimes.layer_spans import Worked
from hwprof.workload.runtimes.open_vino import Counted, laid_out, times_of


def test_times_of_calls_are_told_from_means_to_a_microsecond_a_call() -> None:
    true_ns = [100_400, 300_700, 100_400, 90_000, 700_300]
    means = [sum(true_ns[:number]) // number // 1000 * 1000 for number in range(1, 6)]
    found = [times["a"] for times in times_of([[Counted("a", mean)] for mean in means])]
    assert all(
        abs(one - true) <= 1000 * number for number, (one, true) in enumerate(zip(found, true_ns, strict=True), 1)
    )
    assert 0 <= sum(true_ns) - sum(found) < 5000


def test_a_call_never_takes_less_than_no_time() -> None:
    found = [times["a"] for times in times_of([[Counted("a", 9000)], [Counted("a", 4000)], [Counted("a", 5000)]])]
    assert found == [9000, 0, 6000]


def test_operators_follow_one_another_from_the_call_s_begin() -> None:
    assert laid_out({"a": 10, "b": 30}, 100, 200) == [Worked("a", 100, 110), Worked("b", 110, 140)]


def test_what_comes_to_more_than_the_call_is_made_to_fit() -> None:
    assert laid_out({"a": 100, "b": 300}, 100, 300) == [Worked("a", 100, 150), Worked("b", 150, 300)]
    assert laid_out({"a": 0}, 100, 100) == [Worked("a", 100, 100)]
