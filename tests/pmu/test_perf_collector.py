"""The perf collector against a real kernel driving a PMU: the emulated machine counts instructions exactly."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import Any

import pytest

from tests.pmu.machine import Results


def table(result: dict[str, Any], rows: str = "rows") -> dict[tuple[int, int, str], dict[str, Any]]:
    return {(row["span"], row["tid"], row["event"]): row for row in result[rows]}


@pytest.fixture
def loops(found: Results) -> dict[str, Any]:
    return found["known_loops"]


def overheads(loops: dict[str, Any], thread: str) -> dict[int, Counter[int]]:
    """For each loop length, how often each number of instructions beyond the loop's own was counted."""
    counted, tid = table(loops), loops["names"][thread]
    found: dict[int, Counter[int]] = {}
    for turns, span in loops[thread]:
        found.setdefault(turns, Counter())[counted[span, tid, "instructions"]["value"] - 2 * turns] += 1
    return found


def test_a_known_loop_is_counted_exactly(loops: dict[str, Any]) -> None:
    """The interpreter has a handful of ways from edge to edge, a few instructions apart, and how often it takes which
    differs from boot to boot. Beyond the loop's own 2 n the very same numbers come again and again, for every number of
    turns: a count that is off by a share of the loop would have none in common, as the loops are up to 1000 times as
    long, and medians that grow with it."""
    over = overheads(loops, "main")
    assert len(over) == 3
    common = set.intersection(*(set(found) for found in over.values()))
    assert sum(found[number] for found in over.values() for number in common) >= 3 * len(over), over
    medians = [statistics.median(found.elements()) for found in over.values()]
    assert max(medians) - min(medians) < 500, over  # of two million instructions in the longest loop
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
    after_read = counted[loops["helper_read"], helper, "instructions"]["value"]
    assert 2_000_000 < after_read < 2_060_000


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


def test_the_defaults_of_this_processor(found: Results) -> None:
    """The catalogue knows it. Its PMU is emulated: of the processor's own events all open, and none moves."""
    result = found["what_is_there"]
    assert result["ok"] and result["has_core_pmu"] and result["processor"] == "Neoverse-N1"
    hardware = result["detail"]["hardware"]
    assert hardware[:2] == ["cycles", "instructions"] and len(hardware) > 2
    for parts in result["detail"]["sets"]:
        (part,) = parts
        assert part["pmu"].startswith("armv8_pmuv3")
        assert part["general_counters"] <= part["of"] == 6
        assert part["events"][:2] == ["cycles", "instructions"]
    assert not [note for note in result["stop_notes"] if "counted 0" in note]  # too short a time to say so
    (note,) = [note for note in found["defaults"]["notes"] if "counted 0 throughout" in note]
    assert all(name in note for name in hardware[2:])


def test_a_dead_event_is_told_from_one_that_counts(found: Results) -> None:
    result = found["a_dead_event"]
    counted, main = table(result), result["main"]
    assert counted[0, main, "r1b"]["value"] == 0 < counted[0, main, "r1b"]["running_ns"]
    assert counted[0, main, "again"]["value"] == counted[0, main, "instructions"]["value"] > 10_000_000
    (note,) = [note for note in result["notes"] if "counted 0 throughout" in note]
    assert note.startswith("r1b: counted 0 throughout: it never happened here, or this processor")


def test_events_that_the_pmu_lacks_are_refused_with_the_reason(found: Results) -> None:
    result = found["what_the_pmu_lacks"]
    missing = result["detail"]["unavailable"]
    assert set(missing) == {"cache-misses", "branches"}
    assert missing["cache-misses"]["reason"] == "not offered by this machine's PMU (ENOENT)"
    notes = [note for note in result["notes"] if "ENOENT" in note]
    assert len(notes) == 1 and notes[0].startswith("cache-misses, branches not available: ")
    assert result["event_sets"][0][0] == "instructions"


def test_twice_as_many_events_as_counters_are_counted_in_sets_each_exactly(found: Results) -> None:
    result = found["many_events"]
    counted, main = table(result), result["main"]
    assert len(result["event_sets"]) == 2
    assert {name for names in result["event_sets"] for name in names if name.startswith("again")} == {
        f"again{number}" for number in range(10)
    }
    for span, names in enumerate(result["event_sets"]):
        hardware = [name for name in names if name == "instructions" or name.startswith("again")]
        assert len(hardware) == 6 and names[0] == "cycles"  # every general counter, and the cycle counter
        values = {counted[span, main, name]["value"] for name in hardware}
        assert len(values) == 1 and 2_000_000 < min(values) < 2_060_000
        assert counted[span, main, "cycles"]["value"] == 2 * min(values)
    assert all(row["running_ns"] == row["enabled_ns"] for row in result["rows"])
    assert [part["general_counters"] for (part,) in result["detail"]["sets"]] == [6, 6]


def test_threads_come_and_go(found: Results) -> None:
    """A thread that dies in the middle of a layer keeps its last counts until the next iteration begins."""
    result = found["threads_come_and_go"]
    counted = table(result)
    died = counted[result["died"], result["early"], "instructions"]
    assert 2_000_000 < died["value"] < 2_060_000
    assert died["running_ns"] == died["enabled_ns"] > 0
    assert counted[result["afterwards"], result["early"], "instructions"]["value"] == 0
    assert (result["began"], result["early"], "instructions") not in counted
    began = counted[result["began"], result["late"], "instructions"]["value"]
    assert 1_000_000 < began < 1_060_000
    assert {result["early"], result["late"]} <= {thread["tid"] for thread in result["threads"]}
    assert result["descriptors"] == 0  # what the dead thread gave back, the new one has


def test_scarce_counters_are_counted_in_smaller_sets(found: Results) -> None:
    """Others hold all counters but one: cycles and instructions take turns, one set each, and each is exact."""
    result = found["scarce_counters"]["one_left"]
    assert [names[0] for names in result["event_sets"]] == ["cycles", "instructions"]
    assert all("task-clock" in names for names in result["event_sets"])
    assert any(note.startswith("1 of 6 general counters are free") for note in result["notes"])
    counted, main = table(result), result["main"]
    for span in range(4):
        event, factor = (("cycles", 4), ("instructions", 2))[span % 2]
        row = counted[span, main, event]
        assert row["running_ns"] == row["enabled_ns"] > 0
        assert factor * 1_000_000 < row["value"] < factor * 1_030_000
        assert (span, main, ("instructions", "cycles")[span % 2]) not in counted


def test_sets_shrink_to_what_another_process_leaves(found: Results) -> None:
    result = found["scarce_counters"]["three_left"]
    counted, main = table(result), result["main"]
    assert len(result["event_sets"]) == 5  # instructions and two of the ten others
    for span, names in enumerate(result["event_sets"]):
        values = {counted[span, main, name]["value"] for name in names if name[:5] in ("again", "instr")}
        assert len(values) == 1 and min(values) > 2_000_000
    assert all(row["running_ns"] == row["enabled_ns"] for row in result["rows"])
    (note,) = [note for note in result["notes"] if "general counters are free" in note]
    assert note.startswith("3 of 6 general counters are free")
    assert f"(pid {result['other']}) may hold them" in note


def test_an_event_that_never_gets_a_counter_is_dropped(found: Results) -> None:
    result = found["scarce_counters"]
    assert [names[0] for names in result["starved_sets"]] == ["cycles"]
    reason = result["starved_detail"]["unavailable"]["instructions"]["reason"]
    assert "never gets a hardware counter" in reason


def test_counters_taken_away_during_a_pass_are_noted(found: Results) -> None:
    result = found["scarce_counters"]
    rows = [row for row in result["robbed_rows"] if row["event"] == "instructions" and row["enabled_ns"]]
    assert rows and all(row["running_ns"] < row["enabled_ns"] for row in rows)
    assert any("the kernel multiplexed" in note for note in result["robbed_notes"])


def test_paranoid_3_refuses_an_ordinary_user_with_the_remedy(found: Results) -> None:
    result = found["ordinary_user"]["3"]
    assert (result["uid"], result["paranoid"]) == (1000, 3)
    assert not result["ok"]
    assert result["reason"] == "kernel.perf_event_paranoid is 3: ordinary users may not count anything"
    assert result["remedy"] == "sudo sysctl kernel.perf_event_paranoid=1"
    assert (result["refused"], result["refused_remedy"]) == (result["reason"], result["remedy"])


def main_thread(found: dict[str, Any]) -> dict[str, int]:
    return {row["event"]: row["value"] for row in found["rows"] if row["value"]}


def test_paranoid_2_counts_an_ordinary_users_own_code(found: Results) -> None:
    result = found["ordinary_user"]["2"]
    assert result["ok"] and result["uid"] == 1000
    assert result["detail"]["kernel"] is False
    assert result["detail"]["software"] == ["task-clock", "page-faults"]
    switches = result["detail"]["unavailable"]["context-switches"]
    assert "what happens in the kernel" in switches["reason"] and switches["remedy"].startswith("sudo sysctl")
    assert any("user code only" in note and "sudo sysctl" in note for note in result["notes"])
    counted = main_thread(result)
    assert 2_000_000 < counted["instructions"] < 2_050_000
    assert counted["cycles"] == 2 * counted["instructions"]


def test_paranoid_1_counts_an_ordinary_users_share_of_the_kernel(found: Results) -> None:
    result, user_only = found["ordinary_user"]["1"], found["ordinary_user"]["2"]
    assert result["ok"] and result["uid"] == 1000
    assert result["detail"]["kernel"] is True
    assert "context-switches" in result["detail"]["software"]
    assert not any("user code only" in note for note in result["notes"])
    assert main_thread(result)["instructions"] > main_thread(user_only)["instructions"]


def test_without_a_pmu_software_events_count_and_the_note_says_why(found_without_pmu: Results) -> None:
    result = found_without_pmu["what_is_there"]
    assert result["ok"] and not result["has_core_pmu"]
    assert result["detail"]["hardware"] == []
    assert result["detail"]["software"] == ["task-clock", "page-faults", "context-switches", "cpu-migrations"]
    assert any("hypervisor (QEMU) shows this virtual machine no PMU" in note for note in result["notes"])
    cycles = result["detail"]["unavailable"]["cycles"]
    assert "no PMU" in cycles["reason"] and "pmu=on" in cycles["remedy"]
    clock = [row["value"] for row in result["rows"] if row["event"] == "task-clock" and row["value"]]
    assert clock and clock[0] > 4_000_000  # two million instructions at 2 ns each
    assert {row["event"] for row in result["rows"]} == set(result["detail"]["software"])
