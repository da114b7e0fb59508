"""Who counts where the processor shows no counters: the fallback, unless it was switched off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from hwprof.collector.contract import Availability, OwnPass
from hwprof.errors import HwprofError
from hwprof.session.counters import Counting
from hwprof.session.plan import PassPlan
from hwprof.session.planner import plan_passes
from tests.support.fake_collectors import Counter, survey, surveyed

LACKING = Availability(lacks="hardware events")


class Instrumented(Counter):
    """A counter with a pass of its own, inside the worker."""

    passes = frozenset({"instrumented"})

    def __init__(self) -> None:
        super().__init__("instrumented")

    def own_passes(self, options: dict[str, Any]) -> Sequence[OwnPass]:
        return [OwnPass(name="instrumented", iterations=1, warmup=1, times_from="measure", slow=True)]


def plans(
    *, perf: Availability = LACKING, instrumented: Availability | None = None, passes: Sequence[str] = ("measure",),
    counting: Counting | None = None, **more: Any,
) -> list[PassPlan]:  # fmt: skip
    return plan_passes(
        [*survey(perf=perf), surveyed(Instrumented(), instrumented)],
        list(passes),
        iterations=7,
        warmup=3,
        counting=counting,
        **more,
    )


def names(made: Sequence[PassPlan]) -> list[str]:
    return [plan.name for plan in made]


def test_it_stands_in_where_there_are_no_hardware_counters() -> None:
    measure, own = plans()
    assert [planned.name for planned in measure.in_process] == ["perf"], "software events are counted all the same"
    assert (own.name, own.times_from, own.may_fail, own.asked) == ("instrumented", "measure", True, False)
    assert [planned.name for planned in own.in_process] == ["instrumented"]


def test_where_there_are_hardware_counters_only_on_request() -> None:
    assert names(plans(perf=Availability())) == ["measure"]
    for counters in (["auto", "instrumented"], ["instrumented"]):
        measure, own = plans(perf=Availability(), counting=Counting(counters=counters))
        assert [planned.name for planned in measure.in_process] == ["perf"], "it is beside, not instead"
        assert own.asked, "a run without it is a failure"


def test_who_asks_for_what_would_come_anyway_has_it_once_and_cannot_do_without_it() -> None:
    made = plans(counting=Counting(counters=["auto", "instrumented"]))
    assert names(made) == ["measure", "instrumented"]
    assert made[-1].asked


def test_also_where_perf_is_not_allowed_or_off() -> None:
    assert names(plans(perf=Availability.no("not allowed"))) == ["measure", "instrumented"]
    assert names(plans(off={"perf"})) == ["measure", "instrumented"]


def test_it_can_be_switched_off_and_needs_times_to_be_joined_with() -> None:
    assert names(plans(off={"instrumented"})) == ["measure"]
    assert names(plans(passes=["trace"])) == ["trace"]
    assert names(plans(counting=Counting(counters=["papi"]))) == ["measure"], "who names counters gets those"


def test_why_it_does_not_work_stands_in_the_run() -> None:
    (measure,) = plans(instrumented=Availability.no("frida is not installed", "install it"))
    (said,) = [record for record in measure.left_out if record.name == "instrumented"]
    assert (said.state, said.reason, said.remedy) == ("unavailable", "frida is not installed", "install it")
    with pytest.raises(HwprofError, match=r"instrumented does not work here: frida is not installed\. Try: install it"):
        plans(instrumented=Availability.no("frida is not installed", "install it"),
              counting=Counting(counters=["instrumented"]))  # fmt: skip


def test_another_counter_with_passes_of_its_own_is_beside_it_or_alone() -> None:
    class Other(Instrumented):
        def __init__(self) -> None:
            super().__init__()
            self.name = "other"

        def own_passes(self, options: dict[str, Any]) -> Sequence[OwnPass]:
            return [OwnPass(name="other", times_from="measure")]

    found = [*survey(perf=LACKING), surveyed(Instrumented()), surveyed(Other())]

    def planned(*counters: str) -> list[str]:
        return names(plan_passes(found, ["measure"], iterations=1, warmup=0, counting=Counting(counters=counters)))

    assert planned("auto", "other") == ["measure", "instrumented", "other"]
    assert planned("other") == ["measure", "other"]
