"""Collectors that have passes of their own: what is planned for them, and how long that is said to take."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hwprof.collector.contract import Availability, OwnPass
from hwprof.collector.declaration import Place
from hwprof.errors import HwprofError, UsageError
from hwprof.run.manifest import IterationRecord
from hwprof.run.roles import Role
from hwprof.session.counters import Counting
from hwprof.session.launcher import Launching
from hwprof.session.plan import CollectorPlan, PassPlan
from hwprof.session.planner import plan_passes
from hwprof.session.prediction import prediction, words
from tests.support.fake_collectors import Counter, survey, surveyed
from tests.support.synthetic_run import build


class Slow(Counter):
    """A counter that launches the worker, and has a companion."""

    place = Place.LAUNCHER
    passes = frozenset({"slow"})

    def __init__(self) -> None:
        super().__init__("slow")

    def own_passes(self, options: dict[str, Any]) -> Sequence[OwnPass]:
        environment = {"ISA": "OLD"}
        return [
            OwnPass(name="measure-old", collecting=False, environment=environment, threads=1, instruction_set="old"),
            OwnPass(name="slow", iterations=2 if options.get("twice") else 1, warmup=1, environment=environment,
                    threads=1, instruction_set="old", times_from="measure-old", slow=True, slowdown=50.0),
        ]  # fmt: skip


def plans(counting: Counting, *, ok: bool = True, **more: Any) -> list[PassPlan]:
    availability = Availability() if ok else Availability.no("there is no tool", "install it")
    return plan_passes(
        [*survey(), surveyed(Slow(), availability)], ["measure"], iterations=7, warmup=3, counting=counting, **more
    )


def names(made: Sequence[PassPlan]) -> list[str]:
    return [plan.name for plan in made]


def test_passes_of_its_own_come_only_where_it_was_asked_for() -> None:
    assert names(plans(Counting())) == ["measure"]
    assert names(plans(Counting(counters=["auto", "slow"]))) == ["measure", "measure-old", "slow"]
    assert names(plans(Counting(counters=["slow"]))) == ["measure", "measure-old", "slow"]


def test_it_takes_part_in_its_pass_alone_and_its_companion_has_nobody() -> None:
    measure, companion, own = plans(Counting(counters=["auto", "slow"]))
    assert [planned.name for planned in measure.in_process] == ["perf"]
    assert measure.in_process[0].options == {"alone": True}, "nobody else is at the same edges"
    assert measure.environment == {}
    assert companion.in_process == companion.external == companion.launcher == ()
    assert (companion.iterations, companion.warmup) == (7, 3)
    assert own.launcher == (CollectorPlan("slow", {}, Role.COUNTER),)
    assert own.in_process == own.external == ()
    assert (own.iterations, own.warmup, own.times_from, own.slow) == (1, 1, "measure-old", True)
    assert (measure.timed, companion.timed, own.timed) == (True, True, False)
    assert companion.environment == own.environment == {"ISA": "OLD"}


def test_as_the_only_collector_it_reads_at_nobody_s_edges() -> None:
    _, _, own = plan_passes([surveyed(Slow())], ["measure"], iterations=1, warmup=0, named=["slow"])
    assert own.launcher == (CollectorPlan("slow", {}, Role.COUNTER),)


def test_its_options_reach_it() -> None:
    made = plans(Counting(counters=["auto", "slow"], further={"slow": {"twice": True}}))
    assert made[-1].iterations == 2
    assert made[-1].launcher[0].options == {"twice": True}
    with pytest.raises(UsageError, match=r"slow does not count in this run\. Try: --counters auto,slow"):
        plans(Counting(further={"slow": {"twice": True}}))


def test_what_cannot_be_is_refused_before_anything_starts() -> None:
    with pytest.raises(HwprofError, match=r"slow does not work here: there is no tool\. Try: install it"):
        plans(Counting(counters=["slow"]), ok=False)
    with pytest.raises(HwprofError, match="slow does not work here"):
        plans(Counting(), ok=False, named=["slow"])
    with pytest.raises(UsageError, match="contradict"):
        plans(Counting(counters=["slow"]), off={"slow"})
    with pytest.raises(UsageError, match="no counter in this run"):
        plans(Counting(counters=["slow"], events=["cycles"]), off={"perf"})


def test_events_are_for_those_that_share_a_pass() -> None:
    made = plans(Counting(counters=["auto", "slow"], events=["cycles"]))
    assert made[0].in_process[0].options == {"alone": True, "events": ["cycles"]}
    assert made[-1].launcher[0].options == {}


def test_nobody_around_is_nothing_and_two_are_too_many(tmp_path: Path) -> None:
    plan = plans(Counting())[0]
    nobody = Launching(plan, tmp_path)
    assert nobody.command() == []
    assert nobody.collect_results(1, []) == []
    two = PassPlan(
        name="x", iterations=1, warmup=0, in_process=(), external=(), launcher=(CollectorPlan("a"), CollectorPlan("b"))
    )
    with pytest.raises(HwprofError, match="a and b cannot share a pass"):
        Launching(two, tmp_path)


def test_how_long_it_takes_follows_from_the_companion(tmp_path: Path) -> None:
    run = build(tmp_path)
    companion = run.manifest.passes[0]
    companion.measured_ns = 2_000_000_000 * sum(not iteration.warmup for iteration in companion.iterations)
    plan = PassPlan(
        name="slow", iterations=2, warmup=1, in_process=(), external=(), times_from="measure", slow=True,
        startup_s=10.0, slowdown=5.0, call_s=1.0,
    )  # fmt: skip
    assert prediction(run, plan) == " (the pass takes about 40 s)", "10 + 5 x 2 s x 2 + 5 leaves"
    companion.iterations = [IterationRecord(0, True, None, False)]
    assert prediction(run, plan) == ""
    assert prediction(run, PassPlan(name="x", iterations=1, warmup=0, in_process=(), external=())) == ""


@pytest.mark.parametrize(
    ("seconds", "said"), [(3, "10 s"), (44, "40 s"), (89, "90 s"), (90, "2 min"), (100, "2 min"), (3600, "60 min")]
)
def test_predictions_are_round(seconds: float, said: str) -> None:
    assert words(seconds) == f" (the pass takes about {said})"


def test_a_pass_of_its_own_is_had_by_asking_for_the_counter() -> None:
    with pytest.raises(UsageError) as caught:
        plan_passes([*survey(), surveyed(Slow())], ["measure", "slow"], iterations=1, warmup=0)
    assert caught.value.remedy is not None and "--counters slow" in caught.value.remedy
