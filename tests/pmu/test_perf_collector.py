"""The perf collector against a real kernel driving a PMU: the emulated machine counts instructions exactly."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.pmu.machine import run_in_vm

JOBS = "tests.pmu.guest.jobs"
Results = dict[str, dict[str, Any]]


def run_jobs(out: Path, *jobs: str, **options: Any) -> Results:
    done = run_in_vm(["python3", "-m", JOBS, *jobs], out=out, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return {job: json.loads((out / f"{job}.json").read_text()) for job in jobs}


def table(result: dict[str, Any], rows: str = "rows") -> dict[tuple[int, int, str], dict[str, Any]]:
    return {(row["span"], row["tid"], row["event"]): row for row in result[rows]}


@pytest.fixture(scope="module")
def root_run(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """One boot for all jobs that root does."""
    return run_jobs(
        tmp_path_factory.mktemp("root"), "what_is_there", "known_loops", "threads_come_and_go", "scarce_counters"
    )


@pytest.fixture(scope="module")
def loops(root_run: Results) -> dict[str, Any]:
    return root_run["known_loops"]


def overheads(loops: dict[str, Any], thread: str) -> dict[int, Counter[int]]:
    """For each loop length, how often each number of instructions beyond the loop's own was counted."""
    counted, tid = table(loops), loops["names"][thread]
    found: dict[int, Counter[int]] = {}
    for turns, span in loops[thread]:
        found.setdefault(turns, Counter())[counted[span, tid, "instructions"]["value"] - 2 * turns] += 1
    return found


def test_a_known_loop_is_counted_exactly(loops: dict[str, Any]) -> None:
    """The interpreter has a handful of ways from edge to edge, a few instructions apart. Beyond the loop's own 2 n the
    very same numbers are counted for a thousand turns and for a million."""
    over = overheads(loops, "main")
    assert len(over) == 3
    usual = [{instructions for instructions, times in found.items() if times >= 2} for found in over.values()]
    assert len(set.intersection(*usual)) >= 2, over
    everything = [instructions for found in over.values() for instructions in found]
    assert min(everything) > 0 and max(everything) < min(everything) + 5_000


def test_a_worker_is_counted_in_the_span_in_which_it_worked(loops: dict[str, Any]) -> None:
    for turns, over in overheads(loops, "worker").items():
        assert min(over) > 0
        assert max(over) < 60_000, f"{turns} turns: more than waking up a thread takes"
    counted, tid = table(loops), loops["names"]["worker"]
    idle = [counted[span, tid, "instructions"]["value"] for _, span in loops["main"]]
    assert max(idle) < 60_000, "the main thread's loop showed up in the worker"


def test_emulated_cycles_are_twice_the_instructions(loops: dict[str, Any]) -> None:
    """CPI is 2 in the emulation; swapped, shifted or mixed-up group members would show here."""
    counted = table(loops)
    instructions = {key[:2]: row["value"] for key, row in counted.items() if key[2] == "instructions"}
    assert len(instructions) > 100
    assert all(counted[*key, "cycles"]["value"] == 2 * value for key, value in instructions.items())


def test_layers_and_what_no_layer_owns_are_the_whole(loops: dict[str, Any]) -> None:
    counted, names = table(loops), loops["names"]
    for thread in ("main", "worker"):
        for event in ("cycles", "instructions", "task-clock", "page-faults", "context-switches"):
            whole = counted[loops["whole"], names[thread], event]["value"]
            between = sum(counted[span, names[thread], event]["value"] for span in loops["consecutive"])
            assert between == whole, (thread, event)
    leaves = sum(counted[span, names["main"], "instructions"]["value"] for span in range(loops["leaves"]))
    assert leaves < counted[loops["whole"], names["main"], "instructions"]["value"]


def test_an_independent_counter_agrees(loops: dict[str, Any]) -> None:
    """A group that the collector does not know of, switched on around the same work."""
    counted, main = table(loops), loops["names"]["main"]
    for event, second_opinion in zip(("cycles", "instructions"), loops["second_opinion"], strict=True):
        whole = counted[loops["whole"], main, event]["value"]
        assert whole <= second_opinion <= whole + 100_000


def test_an_idle_thread_loses_nothing(loops: dict[str, Any]) -> None:
    """The helper slept in the iteration before, so no leaf reads it; what it then did is in the whole."""
    counted, helper = table(loops), loops["names"]["helper"]
    assert not [span for span in range(loops["leaves"]) if (span, helper, "instructions") in counted]
    whole = counted[loops["whole"], helper, "instructions"]["value"]
    assert 6_000_000 < whole < 6_060_000
    swept = counted[loops["helper_swept"], helper, "instructions"]["value"]
    assert 2_000_000 < swept < 2_060_000


def test_counters_ran_all_the_time(loops: dict[str, Any]) -> None:
    rows = loops["rows"]
    assert all(row["running_ns"] == row["enabled_ns"] for row in rows)
    assert {row["provenance"] for row in rows} == {"measured"}
    assert not [note for note in loops["notes"] if "multiplexed" in note or "processor time" in note]
    assert loops["detail"]["counted_cpu_ns"] == pytest.approx(loops["detail"]["process_cpu_ns"], rel=0.02)


def test_the_manifest_gets_meanings_and_threads(loops: dict[str, Any]) -> None:
    events = {name: (meaning, unit, kind) for name, meaning, unit, kind in loops["events"]}
    assert "INST_RETIRED" in events["instructions"][0]
    assert events["task-clock"][1:] == ("ns", "software")
    roles = {thread["tid"]: thread["role"] for thread in loops["threads"]}
    names = loops["names"]
    assert (roles[names["main"]], roles[names["worker"]]) == ("main", "worker")
    assert list(roles.values()).count("main") == 1


def test_events_that_the_pmu_lacks_are_refused_with_the_reason(root_run: Results) -> None:
    found = root_run["what_is_there"]
    assert found["ok"] and found["has_core_pmu"] and found["processor"] == "Neoverse-N1"
    assert found["detail"]["hardware"] == ["cycles", "instructions"]
    missing = found["detail"]["unavailable_events"]
    assert set(missing) == {"cache-references", "cache-misses", "branches", "branch-misses"}
    assert missing["cache-misses"]["reason"] == "this machine's PMU does not offer cache-misses (ENOENT)"
    assert any("cache-misses" in note for note in found["notes"])


def test_threads_come_and_go(root_run: Results) -> None:
    result = root_run["threads_come_and_go"]
    counted = table(result)
    ended = counted[result["ended"], result["early"], "instructions"]["value"]
    assert 10_000_000 < ended < 80_000_000  # the rest was done before the counters were opened
    assert (result["began"], result["early"], "instructions") not in counted
    began = counted[result["began"], result["late"], "instructions"]["value"]
    assert 1_000_000 < began < 1_060_000
    assert {result["early"], result["late"]} <= {thread["tid"] for thread in result["threads"]}


def test_scarce_counters_are_counted_in_smaller_sets(root_run: Results) -> None:
    """Others hold all counters but one: cycles and instructions take turns, one set each, and each is exact."""
    result = root_run["scarce_counters"]
    assert [names[0] for names in result["event_sets"]] == ["cycles", "instructions"]
    assert all("task-clock" in names for names in result["event_sets"])
    assert any("counted in smaller sets" in note for note in result["notes"])
    main = next(thread["tid"] for thread in root_run["known_loops"]["threads"] if thread["role"] == "main")
    counted = table(result)
    for iteration, span in enumerate(result["spans"]):
        event, factor = (("cycles", 4), ("instructions", 2))[iteration % 2]
        row = counted[span, main, event]
        assert row["running_ns"] == row["enabled_ns"] > 0
        assert factor * 1_000_000 < row["value"] < factor * 1_025_000
        assert (span, main, ("instructions", "cycles")[iteration % 2]) not in counted


def test_an_event_that_never_gets_a_counter_is_dropped(root_run: Results) -> None:
    result = root_run["scarce_counters"]
    assert [names[0] for names in result["starved_sets"]] == ["cycles"]
    reason = result["starved_detail"]["unavailable_events"]["instructions"]["reason"]
    assert "never gets a hardware counter" in reason


def test_counters_taken_away_during_a_pass_are_noted(root_run: Results) -> None:
    result = root_run["scarce_counters"]
    rows = [row for row in result["robbed_rows"] if row["event"] == "instructions" and row["enabled_ns"]]
    assert rows and all(row["running_ns"] < row["enabled_ns"] for row in rows)
    assert any("the kernel multiplexed" in note for note in result["robbed_notes"])


def test_paranoid_3_refuses_an_ordinary_user_with_the_remedy(tmp_path: Path) -> None:
    found = run_jobs(tmp_path, "what_is_there", user=True, paranoid=3)["what_is_there"]
    assert (found["uid"], found["paranoid"]) == (1000, 3)
    assert not found["ok"]
    assert found["reason"] == "kernel.perf_event_paranoid is 3: ordinary users may not count anything"
    assert found["remedy"] == "sudo sysctl kernel.perf_event_paranoid=1"
    assert (found["refused"], found["refused_remedy"]) == (found["reason"], found["remedy"])


def test_paranoid_2_counts_an_ordinary_users_own_code(tmp_path: Path) -> None:
    found = run_jobs(tmp_path, "what_is_there", user=True, paranoid=2)["what_is_there"]
    assert found["ok"] and found["uid"] == 1000
    assert found["detail"]["kernel"] is False
    assert found["detail"]["software"] == ["task-clock", "page-faults"]
    switches = found["detail"]["unavailable_events"]["context-switches"]
    assert "happen in the kernel" in switches["reason"] and switches["remedy"].startswith("sudo sysctl")
    assert any("user code only" in note and "sudo sysctl" in note for note in found["notes"])
    counted = {row["event"]: row["value"] for row in found["rows"] if row["value"]}
    assert 2_000_000 < counted["instructions"] < 2_050_000
    assert counted["cycles"] == 2 * counted["instructions"]


def test_without_a_pmu_software_events_count_and_the_note_says_why(tmp_path: Path) -> None:
    found = run_jobs(tmp_path, "what_is_there", cpu="neoverse-n1,pmu=off")["what_is_there"]
    assert found["ok"] and not found["has_core_pmu"]
    assert found["detail"]["hardware"] == []
    assert found["detail"]["software"] == ["task-clock", "page-faults", "context-switches", "cpu-migrations"]
    assert any("hypervisor (QEMU) shows this virtual machine no PMU" in note for note in found["notes"])
    cycles = found["detail"]["unavailable_events"]["cycles"]
    assert "no PMU" in cycles["reason"] and "pmu=on" in cycles["remedy"]
    clock = [row["value"] for row in found["rows"] if row["event"] == "task-clock" and row["value"]]
    assert clock and clock[0] > 4_000_000  # two million instructions at 2 ns each
    assert {row["event"] for row in found["rows"]} == set(found["detail"]["software"])
