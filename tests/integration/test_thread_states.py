"""Threads of programs that do what is known, as the sampler and the analysis tell it: on this machine as it is, and
with two busy processes beside."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from hwprof.analysis.parallelism import WORTH_NAMING
from scripts.neighbours import loops
from tests.support.bounds import disturbance
from tests.support.threaded_programs import COMPILED, PROGRAMS, Watched, watched

pytestmark = pytest.mark.alone

WITHIN = 0.03
UNTOLD_NS = 1_000_000
"""An iteration's: what threads do beside what they tell (creating each other, telling)."""

BUSY_PROCESSES = 2


@pytest.fixture(scope="module", params=["as it is", "busy"])
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=PROGRAMS)
def run(request: pytest.FixtureRequest, machine: str, tmp_path_factory: pytest.TempPathFactory) -> Watched:
    beside = loops(BUSY_PROCESSES) if machine == "busy" else nullcontext()
    with beside, disturbance() as disturbed:
        found = watched(request.param, tmp_path_factory.mktemp(request.param))
    found.stolen_ns = round(disturbed.stolen_s * 1e9)
    return found


def near(found: float, least: float, most: float, run: Watched) -> bool:
    """Within 3% of the interval that is known, but for what is not told and for what the hypervisor took."""
    slack = UNTOLD_NS * len(run.iterations) + run.stolen_ns
    return least * (1 - WITHIN) - slack <= found <= most * (1 + WITHIN) + slack


def test_a_thread_works_for_as_long_as_it_works(run: Watched) -> None:
    for one in run.threads:
        found = run.states(one.tid)
        if found or one.work_ns:
            assert near(found.get("busy", 0.0), one.work_ns, one.work_ns, run), (one, found)


def test_a_thread_is_blocked_for_as_long_as_it_waits(run: Watched) -> None:
    for one in run.threads:
        if run.states(one.tid):
            found = run.blocked(one.tid)
            assert near(sum(found.values()), *one.waits_ns(), run), (one, found)


def test_the_calling_thread_waits_for_what_it_waits_for(run: Watched) -> None:
    """Python's locks are followed by its interpreter's, and its thread's end is a lock."""
    calling = run.threads[0]
    found = run.blocked(calling.tid)
    assert "blocked" not in found, "of a thread that was there before sampling began every wait was seen"
    if run.name in COMPILED:
        for kind in {wait.kind for wait in calling.waits}:
            assert near(found.get(kind, 0.0), *calling.waits_ns(kind), run), (kind, found)
    else:
        assert max(found, key=lambda kind: found[kind]) == {"gil": "GIL", "queue": "lock"}[run.name]
        assert set(found) <= {"GIL", "lock", "condition"}


def test_before_its_creation_and_after_its_end_a_thread_does_nothing(run: Watched) -> None:
    """No time is left over, or invented, to make up for them."""
    for one in run.threads:
        found = run.states(one.tid)
        if found and one.ended_ns:
            there = sum(ns for state, ns in found.items() if state != "absent")
            assert near(there, *one.there_ns(run.iterations), run), (one, found)


@pytest.mark.parametrize("run", ["short"], indirect=True)  # the others' helpers live longer
def test_a_helper_of_one_iteration_is_told_with_its_time_in_that_one(run: Watched) -> None:
    _, helper = run.times.by_thread
    assert helper["iterations"] == 1
    assert near(helper["busy_ns"], 40e6, 40e6, run)


CAUSES = {
    "short": "end of thread",
    "barrier": "pthread barrier",
    "lock": "lock",
    "condition": "condition",
    "chain": "semaphore",
    "io": "I/O",
    "gil": "GIL",
    "queue": "lock",
}
"""Of each program's path: what the calling thread waits for."""


def test_the_path_follows_the_threads_that_are_waited_for(run: Watched) -> None:
    """While the calling thread waits, for whichever of them it is, they work, or have no processor."""
    calling = run.threads[0]
    least, most = calling.waits_ns()
    path = run.times.critical_path()
    elsewhere = sum(one["ns"] for one in path if one["tid"] != calling.tid) * len(run.iterations)
    own = run.states(calling.tid)
    if run.name == "io":
        assert elsewhere == 0, "nobody of the process keeps it from its file: it waits for itself"
        assert near(sum(one["ns"] for one in path if one["state"] == "I/O") * len(run.iterations), least, most, run)
        return
    waited = sum(ns for state, ns in own.items() if state in run.blocked(calling.tid))
    late = sum(one["ns"] for one in path if one["tid"] == calling.tid and one["state"] in run.blocked(calling.tid))
    assert elsewhere + late * len(run.iterations) == pytest.approx(waited, rel=1e-6)
    worked = sum(one["ns"] for one in path if one["tid"] != calling.tid and one["state"] == "busy")
    if run.name in ("condition", "chain", "short", "queue"):  # they work while it waits, and at no other time
        known = [one.work_while_waiting_ns(calling) for one in run.threads[1:]]
        least, most = (sum(bounds) for bounds in zip(*known, strict=True))
        times = {(one["tid"], one["state"], one["cause"]): round(one["ns"]) for one in path}
        assert near(worked * len(run.iterations), least, most, run), (times, own, known, run.stolen_ns)


def test_the_finding_names_what_the_path_waits_for(run: Watched) -> None:
    (layer,) = run.times.layers()
    causes: dict[str, float] = {}
    for one in layer["critical_path"]:
        cause = one["cause"] or (one["state"] if one["state"] == CAUSES[run.name] else None)
        if cause is not None:
            causes[cause] = causes.get(cause, 0.0) + one["share"]
    assert max(causes, key=lambda cause: causes[cause]) == CAUSES[run.name]
    if causes[CAUSES[run.name]] >= WORTH_NAMING:
        assert layer["largest_loss"].startswith(f"{CAUSES[run.name]}: "), layer
