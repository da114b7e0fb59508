"""Who counts what: --counters, --events and --user-only as plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from hwprof.collector.contract import Availability
from hwprof.collector.registry import Surveyed
from hwprof.errors import HwprofError, UsageError
from hwprof.session.counters import Counting
from hwprof.session.plan import PassPlan
from hwprof.session.planner import plan_passes
from tests.support.fake_collectors import survey


def plan(
    counting: Counting | None = None, surveyed: Sequence[Surveyed] | None = None, named: Sequence[str] = (), **more: Any
) -> PassPlan:
    (made,) = plan_passes(
        survey() if surveyed is None else surveyed,
        ["measure"],
        iterations=3,
        warmup=1,
        named=named,
        counting=counting,
        **more,
    )
    return made


def inside(made: PassPlan) -> dict[str, dict[str, Any]]:
    return {planned.name: planned.options for planned in made.in_process}


def test_perf_counts_unless_another_is_asked_for_and_nobody_misses_the_other() -> None:
    made = plan()
    assert inside(made) == {"perf": {"alone": True}}
    assert [planned.name for planned in made.external] == ["memory"]
    assert made.left_out == ()


def test_counters_are_chosen_by_name_or_with_the_collectors() -> None:
    assert inside(plan(Counting(counters=["papi"]))) == {"papi": {"alone": True}}
    assert inside(plan(Counting(counters=["perf", "papi"]))) == {"papi": {}, "perf": {}}
    assert inside(plan(Counting(counters=["auto", "papi"]))) == {"papi": {}, "perf": {}}
    assert inside(plan(named=["papi"], surveyed=survey()[:1])) == {"papi": {"alone": True}}
    assert inside(plan(named=["papi", "perf"])) == {"papi": {}, "perf": {}}
    assert inside(plan(named=["memory"], surveyed=survey()[2:])) == {}


def test_events_go_to_whoever_knows_them() -> None:
    both = Counting(counters=["perf", "papi"], events=["cpi", "cycles", "PAPI_TOT_CYC"], user_only=True)
    assert inside(plan(both)) == {
        "papi": {"kernel": False, "events": ["cpi", "PAPI_TOT_CYC"]},
        "perf": {"kernel": False, "events": ["cpi", "cycles"]},
    }


@pytest.mark.parametrize(
    ("counting", "says"),
    [
        (Counting(events=["PAPI_TOT_CYC"]), "perf knows no event 'PAPI_TOT_CYC'"),
        (Counting(counters=["papi"], events=["cpi", "cycles"]), "papi knows no event 'cycles'"),
        (Counting(counters=["perf", "papi"], events=["bogus"]), "knows no event 'bogus'"),
        (Counting(counters=["prf"]), "no counter is called 'prf'.*auto, papi, perf"),
        (Counting(counters=["memory"]), "no counter is called 'memory'"),
    ],
)
def test_what_nobody_knows_is_refused_before_anything_starts(counting: Counting, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        plan(counting)


def test_options_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(UsageError, match="--no-papi"):
        plan(Counting(counters=["papi"]), off={"papi"})
    with pytest.raises(UsageError, match="--collectors leaves out"):
        plan(Counting(counters=["papi"]), named=["memory"], surveyed=survey()[2:])


def test_a_counter_asked_for_by_name_must_work() -> None:
    broken = survey(papi=Availability.no("there is no libpapi", "install it"))
    with pytest.raises(HwprofError, match=r"papi does not work here: there is no libpapi\. Try: install it") as refusal:
        plan(Counting(counters=["papi"]), broken)
    assert refusal.value.exit_code == 1
    assert inside(plan(surveyed=broken)) == {"perf": {"alone": True}}


def test_what_auto_stands_for_may_be_missing_and_says_so() -> None:
    made = plan(surveyed=survey(perf=Availability.no("seccomp", "--cap-add PERFMON")))
    assert inside(made) == {}
    assert [(record.name, record.reason) for record in made.left_out] == [("perf", "seccomp")]
    without = plan(off={"perf"})
    assert [(record.name, record.state) for record in without.left_out] == [("perf", "off")]
