"""Collectors beside a worker: in which passes they run, with what, and how they hear of its progress."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hwprof.collector import registry
from hwprof.collector.contract import Availability, Collected, PassContext
from hwprof.collector.declaration import Option, Place
from hwprof.errors import HwprofError, UsageError
from hwprof.interrupts import Interrupt
from hwprof.run.notes import Note, NoteKind
from hwprof.run.roles import Role
from hwprof.session.external import ExternalCollectors
from hwprof.session.interruption import EndedBySignal
from hwprof.session.messages import Phase, PhaseBegins, Step
from hwprof.session.plan import CollectorPlan, PassPlan
from hwprof.session.planner import plan_passes
from tests.support.fake_collectors import Bystander, Counter, surveyed


class Watcher(Bystander):
    """Runs in the trace pass, refuses a frequency of 13, and writes down what it hears."""

    name = "watcher"
    passes = frozenset({"trace"})
    heard: list[str]

    def __init__(self, fails_at: str | None = None, error: BaseException | None = None) -> None:
        self.heard = []
        self._fails_at = fails_at
        self._error = error or HwprofError(f"fails at {fails_at}", "repair it")

    def check_options(self, options: dict[str, Any]) -> None:
        if options.get("frequency") == 13:
            raise UsageError("13 is refused")

    def worker_environment(self) -> Mapping[str, str]:
        return {"JIT": "2"}

    def start(self, context: PassContext) -> None:
        self._hear("start")

    def work_begins(self) -> None:
        self._hear("begins")

    def step(self) -> None:
        self._hear("step")

    def work_ends(self) -> None:
        self._hear("ends")

    def stop(self) -> Collected:
        self._hear("stop")
        return Collected(notes=[Note(NoteKind.SCOPE, "watched")])

    def _hear(self, what: str) -> None:
        self.heard.append(what)
        if what == self._fails_at:
            raise self._error


def plans(availability: Availability | None = None, **more: Any) -> dict[str, PassPlan]:
    found = [surveyed(Bystander()), surveyed(Watcher(), availability)]
    made = plan_passes(found, ["measure", "trace"], iterations=3, warmup=1, **more)
    return {plan.name: plan for plan in made}


def beside(plan: PassPlan) -> dict[str, dict[str, Any]]:
    return {planned.name: planned.options for planned in plan.external}


def test_a_collector_runs_in_its_own_passes_and_brings_its_environment_there() -> None:
    made = plans()
    assert beside(made["measure"]) == {"memory": {}}
    assert beside(made["trace"]) == {"memory": {}, "watcher": {}}
    assert (made["measure"].environment, made["trace"].environment) == ({}, {"JIT": "2"})


def test_it_runs_in_others_where_that_is_wanted() -> None:
    made = plans(passes_of={"watcher": ["measure", "trace"]})
    assert "watcher" in beside(made["measure"]) and "watcher" in beside(made["trace"])
    assert made["measure"].environment == {"JIT": "2"}
    made = plans(passes_of={"watcher": ["measure"]})
    assert "watcher" in beside(made["measure"]) and "watcher" not in beside(made["trace"])
    with pytest.raises(UsageError, match="--passes does not name it"):
        plans(passes_of={"watcher": ["tarce"]})


def test_its_options_reach_it_or_are_refused_before_anything_starts() -> None:
    assert beside(plans(options={"watcher": {"frequency": 50}})["trace"])["watcher"] == {"frequency": 50}
    with pytest.raises(UsageError, match="13 is refused"):
        plans(options={"watcher": {"frequency": 13}})
    with pytest.raises(UsageError, match="--frequency: the collector watcher does not run"):
        plans(options={"watcher": {"frequency": 50}}, off={"watcher"})
    with pytest.raises(HwprofError, match=r"watcher does not work here: not allowed. Try: allow it"):
        plans(Availability.no("not allowed", "allow it"), options={"watcher": {"frequency": 50}})


class Holder(Bystander):
    """Has hardware counters for itself, or none."""

    name = "holder"
    passes = frozenset({"trace"})

    def __init__(self, holds: bool) -> None:
        self._holds = holds

    def holds_counters(self) -> bool:
        return self._holds


@pytest.mark.parametrize("holds", [True, False])
def test_who_counts_beside_a_holder_of_counters_is_told_of_it(holds: bool) -> None:
    found = [surveyed(one) for one in (Counter("perf"), Holder(holds))]
    measure, trace = plan_passes(found, ["measure", "trace"], iterations=3, warmup=1)
    assert measure.in_process == (CollectorPlan("perf", {"alone": True}, Role.COUNTER),)
    assert trace.in_process == (
        CollectorPlan("perf", {"alone": True} | ({"counters_held_by": "holder"} if holds else {}), Role.COUNTER),
    )
    assert beside(trace) == {"holder": {}}


def test_nobody_else_is_told_of_it() -> None:
    class Neighbour(Bystander):
        name, place = "neighbour", Place.IN_PROCESS

    found = [surveyed(one) for one in (Neighbour(), Counter("perf"), Holder(True))]
    (trace,) = plan_passes(found, ["trace"], iterations=3, warmup=1)
    assert {planned.name: "counters_held_by" in planned.options for planned in trace.in_process} == {
        "neighbour": False,
        "perf": True,
    }


def test_what_is_given_comes_before_what_is_declared() -> None:
    found = surveyed(Watcher())
    declared = replace(found.declaration, options=(Option("frequency", "", default=99), Option("depth", "", default=8)))
    (trace,) = plan_passes(
        [replace(found, declaration=declared)],
        ["trace"],
        iterations=1,
        warmup=0,
        options={"watcher": {"frequency": 50}},
    )
    assert beside(trace) == {"watcher": {"frequency": 50, "depth": 8}}


# --- progress


def running(watcher: Watcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ExternalCollectors:
    monkeypatch.setattr(registry, "create", lambda name: watcher)
    plan = PassPlan(name="trace", iterations=1, warmup=0, in_process=(), external=(CollectorPlan("watcher"),))
    return ExternalCollectors(plan, tmp_path, 1)


def test_it_hears_how_far_the_worker_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watcher = Watcher()
    watched = running(watcher, tmp_path, monkeypatch)
    for message in (
        PhaseBegins(Phase.IMPORTING),
        PhaseBegins(Phase.WARMING_UP, 1),
        Step(),
        PhaseBegins(Phase.COLLECTING),
    ):
        watched.hear(message)
    ((planned, collected),) = watched.stop()
    assert watcher.heard == ["start", "begins", "step", "ends", "stop"]
    assert (planned.name, [note.text for note in collected.notes]) == ("watcher", ["watched"])
    assert watched.records == []


@pytest.mark.parametrize("moment", ["begins", "step", "ends"])
def test_one_that_fails_on_the_way_is_stopped_and_costs_its_own_data_only(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = Watcher(fails_at=moment)
    watched = running(watcher, tmp_path, monkeypatch)
    for message in (PhaseBegins(Phase.WARMING_UP), Step(), PhaseBegins(Phase.COLLECTING)):
        watched.hear(message)
    assert watched.stop() == []
    assert watcher.heard[-2:] == [moment, "stop"] and watcher.heard.count("stop") == 1
    (record,) = watched.records
    assert (record.state, record.reason, record.remedy) == ("failed", f"fails at {moment}", "repair it")


def test_one_that_does_not_want_to_know_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Quiet(Bystander):
        def start(self, context: PassContext) -> None: ...

        def stop(self) -> Collected:
            return Collected()

    monkeypatch.setattr(registry, "create", lambda name: Quiet())
    plan = PassPlan(name="trace", iterations=1, warmup=0, in_process=(), external=(CollectorPlan("memory"),))
    watched = ExternalCollectors(plan, tmp_path, 1)
    watched.hear(PhaseBegins(Phase.WARMING_UP))
    ((planned, _),) = watched.stop()
    assert (planned.name, watched.records) == ("memory", [])


@pytest.mark.parametrize("fails_at", ["start", "step"])
def test_one_that_ends_the_process_fails_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: str
) -> None:
    watcher = Watcher()

    def hear(what: str) -> None:
        if what == fails_at:
            raise SystemExit(7)

    monkeypatch.setattr(watcher, "_hear", hear)
    watched = running(watcher, tmp_path, monkeypatch)
    watched.hear(Step())
    assert [(record.state, record.reason) for record in watched.records] == [("failed", "SystemExit: 7")]
    assert watched.stop() == []


class Panic(BaseException):
    """As extensions written in Rust raise it."""


@pytest.mark.parametrize("moment", ["start", "begins", "stop"])
@pytest.mark.parametrize("error", [Panic("lost"), KeyboardInterrupt(), GeneratorExit(), SystemExit(1)])
def test_whatever_it_raises_costs_its_own_data_only(
    moment: str, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = running(Watcher(moment, error), tmp_path, monkeypatch)
    watched.hear(PhaseBegins(Phase.WARMING_UP))
    assert watched.stop() == []
    (record,) = watched.records
    assert (record.state, (record.reason or "").partition(":")[0]) == ("failed", type(error).__name__)


@pytest.mark.parametrize("interrupt", [Interrupt(), EndedBySignal(15)])
def test_the_user_s_interruption_is_nobody_s_failure(
    interrupt: Interrupt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = running(Watcher("stop", interrupt), tmp_path, monkeypatch)
    with pytest.raises(type(interrupt)):
        watched.stop()
    assert watched.records == []


def test_a_reason_that_is_no_text_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = running(Watcher("start", HwprofError("\udcff", 5)), tmp_path, monkeypatch)  # type: ignore[arg-type]
    assert [(record.reason, record.remedy) for record in watched.records] == [(r"\xff", "5")]


class EndedError(BaseException):
    """In the place of a process's end."""


@pytest.mark.parametrize("fails", [False, True])
def test_a_copy_that_a_collector_makes_of_the_supervisor_ends(
    fails: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Forking(Watcher):
        def stop(self) -> Collected:
            monkeypatch.setattr(os, "getpid", lambda: 0)  # as it is in the copy
            if fails:
                raise RuntimeError
            return Collected()

    def end(status: int) -> None:
        raise EndedError(status)

    monkeypatch.setattr(registry, "create", lambda _: Forking())
    monkeypatch.setattr(os, "_exit", end)
    collectors = ExternalCollectors(plans()["trace"], tmp_path, 1)
    with pytest.raises(EndedError):
        collectors.stop()
