"""The PAPI collector where there is a PMU: it attaches to every thread, and counts what perf counts beside it."""

from __future__ import annotations

from tests.pmu.guest.papi_work import HARDWARE, MANY, SILENT
from tests.pmu.machine import Results
from tests.support.papi_beside_perf import PAGES, ROUNDS, SOFTWARE, table


def test_papi_and_perf_count_the_same_on_every_thread(found_by_papi: Results) -> None:
    """Workers sleep while the edges are read, so both see the very same counts, but where the scheduler's tick came
    between the two readings of an edge. The main thread reads: what that takes is counted on either side."""
    both = found_by_papi["papi_beside_perf"]
    perf, papi = table(both["counts"]["perf"]), table(both["counts"]["papi"])
    assert both["detail"]["papi"]["every_thread"]
    for name, tid in both["threads"].items():
        for perfs_name, papis_name in (SOFTWARE | HARDWARE).items():
            spans = range(1 if name == "late" else 0, ROUNDS)
            pairs = [(papi[span, tid, papis_name]["value"], perf[span, tid, perfs_name]["value"]) for span in spans]
            same = sum(ours == theirs for ours, theirs in pairs)
            if name != "main":
                assert same >= 0.7 * len(pairs), (name, papis_name, pairs)
            scale = 0.005 * max(theirs for _, theirs in pairs)
            assert all(abs(ours - theirs) <= max(scale, 3) for ours, theirs in pairs), (name, papis_name, pairs)
        faults = sorted(papi[span, tid, "perf::PAGE-FAULTS"]["value"] for span in spans)
        assert PAGES <= faults[0] <= faults[len(faults) // 2] <= PAGES + 2


def test_emulated_cycles_are_twice_the_instructions(found_by_papi: Results) -> None:
    """Shifted or mixed-up values would show; in the sets of the rotation as well."""
    for rows in (found_by_papi["papi_beside_perf"]["counts"]["papi"], found_by_papi["papi_in_turn"]["counts"]):
        counted = table(rows)
        instructions = {key[:2]: row["value"] for key, row in counted.items() if key[2] == "PAPI_TOT_INS"}
        assert len(instructions) > 3 and max(instructions.values()) > 1_000_000
        assert all(counted[*key, "PAPI_TOT_CYC"]["value"] == 2 * value for key, value in instructions.items())


def test_more_events_than_counters_are_counted_in_turn(found_by_papi: Results) -> None:
    rotation = found_by_papi["papi_in_turn"]
    sets = rotation["sets"]
    assert len(sets) > 1 and {name for names in sets for name in names} == set(MANY) | set(SOFTWARE.values())
    assert all({"PAPI_TOT_CYC", "PAPI_TOT_INS"} <= set(names) for names in sets)
    assert any(f"counted in {len(sets)} sets in turn" in note for note in rotation["notes"])
    main = [row for row in rotation["counts"] if row["tid"] == rotation["main"]]
    for span in range(2 * len(sets)):
        rows = [row for row in main if row["span"] == span]
        assert [row["event"] for row in rows] == sets[span % len(sets)]
        assert all(row["running_ns"] == row["enabled_ns"] > 1_000_000 for row in rows)


def test_events_that_the_processor_only_pretends_to_have_are_told(found_by_papi: Results) -> None:
    """The emulator counts cycles and instructions; the kernel opens the others, and they stay 0."""
    unavailable = found_by_papi["papi_in_turn"]["detail"]["unavailable"]
    assert "stays 0 where it must count" in unavailable[SILENT]["reason"]
    (note,) = [note for note in found_by_papi["papi_in_turn"]["notes"] if "counted 0 throughout" in note]
    assert "PAPI_L2_DCM" in note and "PAPI_TOT_INS" not in note


def test_an_ordinary_user_counts_user_code(found_by_papi: Results) -> None:
    found = found_by_papi["papi_at_levels"]["2"]
    assert found["ok"], found
    assert found["detail"]["kernel"] is False and found["detail"]["every_thread"]
    assert found["detail"]["hardware"][:2] == list(HARDWARE.values())
    assert found["detail"]["software"] == ["perf::TASK-CLOCK", "perf::PAGE-FAULTS"]
    assert any("user code only" in note and "sudo sysctl" in note for note in found["notes"])


def test_papi_refuses_paranoid_3_with_the_remedy(found_by_papi: Results) -> None:
    found = found_by_papi["papi_at_levels"]["3"]
    assert not found["ok"]
    assert "counts nothing here" in found["reason"] and "paranoid=3" in found["reason"]
    assert found["remedy"] == "sudo sysctl kernel.perf_event_paranoid=1"


def test_a_processor_that_papi_does_not_know_is_the_reason(found_without_pmu: Results) -> None:
    found = found_without_pmu["papi_available"]
    assert not found["ok"]
    assert "libpfm4" in found["reason"] and "newer PAPI" in found["remedy"]
