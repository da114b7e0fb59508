"""The PAPI collector where there is a PMU: it attaches to every thread, and counts what perf counts beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.pmu.guest.papi_work import HARDWARE, MANY, PAGES, ROUNDS, SILENT, SOFTWARE, table
from tests.pmu.machine import run_in_vm

CPU = "cortex-a57"
"""A processor whose PMU the emulator has and for which PAPI 7.0 knows presets."""


def run(out: Path, job: str, **options: Any) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PMU_VM_PACKAGES", "libpapi7.0")
        done = run_in_vm(["python3", "-m", "tests.pmu.guest.papi_work", job], out=out, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    result: dict[str, Any] = json.loads((out / "papi.json").read_text())
    return result


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run(tmp_path_factory.mktemp("papi"), "count", cpu=CPU, paranoid=1)


def test_papi_and_perf_count_the_same_on_every_thread(result: dict[str, Any]) -> None:
    """Workers sleep while the edges are read, so both see the very same counts, but where the scheduler's tick came
    between the two readings of an edge. The main thread reads: what that takes is counted on either side."""
    both = result["both"]
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


def test_emulated_cycles_are_twice_the_instructions(result: dict[str, Any]) -> None:
    """Shifted or mixed-up values would show; in the sets of the rotation as well."""
    for rows in (result["both"]["counts"]["papi"], result["rotation"]["counts"]):
        counted = table(rows)
        instructions = {key[:2]: row["value"] for key, row in counted.items() if key[2] == "PAPI_TOT_INS"}
        assert len(instructions) > 3 and max(instructions.values()) > 1_000_000
        assert all(counted[*key, "PAPI_TOT_CYC"]["value"] == 2 * value for key, value in instructions.items())


def test_more_events_than_counters_are_counted_in_turn(result: dict[str, Any]) -> None:
    rotation = result["rotation"]
    sets = rotation["sets"]
    assert len(sets) > 1 and {name for names in sets for name in names} == set(MANY) | set(SOFTWARE.values())
    assert all({"PAPI_TOT_CYC", "PAPI_TOT_INS"} <= set(names) for names in sets)
    assert any(f"counted in {len(sets)} sets in turn" in note for note in rotation["notes"])
    main = [row for row in rotation["counts"] if row["tid"] == rotation["main"]]
    for span in range(2 * len(sets)):
        rows = [row for row in main if row["span"] == span]
        assert [row["event"] for row in rows] == sets[span % len(sets)]
        assert all(row["running_ns"] == row["enabled_ns"] > 1_000_000 for row in rows)


def test_events_that_the_processor_only_pretends_to_have_are_told(result: dict[str, Any]) -> None:
    """The emulator counts cycles and instructions; the kernel opens the others, and they stay 0."""
    unavailable = result["rotation"]["detail"]["unavailable_events"]
    assert "stays 0 where it must count" in unavailable[SILENT]["reason"]
    (note,) = [note for note in result["rotation"]["notes"] if note.startswith("stayed 0 throughout")]
    assert "PAPI_L2_DCM" in note and "PAPI_TOT_INS" not in note


def test_an_ordinary_user_counts_user_code(tmp_path: Path) -> None:
    found = run(tmp_path, "available", cpu=CPU, paranoid=2, user=True)
    assert found["ok"], found
    assert found["detail"]["kernel"] is False and found["detail"]["every_thread"]
    assert found["detail"]["hardware"][:2] == list(HARDWARE.values())
    assert found["detail"]["software"] == ["perf::TASK-CLOCK", "perf::PAGE-FAULTS"]
    assert any("user code only" in note and "sudo sysctl" in note for note in found["notes"])


def test_papi_refuses_paranoid_3_with_the_remedy(tmp_path: Path) -> None:
    found = run(tmp_path, "available", cpu=CPU, paranoid=3)
    assert not found["ok"]
    assert "counts nothing here" in found["reason"] and "paranoid=3" in found["reason"]
    assert found["remedy"] == "sudo sysctl kernel.perf_event_paranoid=1"


def test_a_processor_that_papi_does_not_know_is_the_reason(tmp_path: Path) -> None:
    found = run(tmp_path, "available", cpu="cortex-a72", paranoid=1)
    assert not found["ok"]
    assert "libpfm4" in found["reason"] and "newer PAPI" in found["remedy"]
