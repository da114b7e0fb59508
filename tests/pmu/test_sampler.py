"""The sampler against a real kernel driving a PMU: where samples lie, and what they stand for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pmu.guest.sampling import A_LITTLE, TURNS, WORKERS_TURNS
from tests.pmu.machine import Results

FREQUENCY_HZ = 999
CYCLES_A_TURN = 4  # two instructions of two cycles each


@pytest.fixture
def loops(found: Results) -> dict[str, Any]:
    return found["sampled_loops"]


def of(loops: dict[str, Any], thread: str) -> list[dict[str, Any]]:
    return [sample for sample in loops["samples"] if sample["tid"] == loops["names"][thread]]


def in_the_loop(loops: dict[str, Any], sample: dict[str, Any]) -> bool:
    begin, end = loops["loop"]
    return bool(begin <= sample["address"] < end)


def test_cycles_are_sampled_with_instructions(loops: dict[str, Any]) -> None:
    detail = loops["detail"]
    assert (detail["event"], detail["frequency_hz"], detail["kernel"]) == ("cycles", FREQUENCY_HZ, False)
    assert [group["events"][:2] for group in detail["groups"]] == [["cycles", "instructions"]]
    assert (detail["lost"], detail["torn_bytes"]) == (0, 0)
    assert detail["precise"] == 0, "Arm's PMUs promise none"


def test_an_event_that_the_emulated_pmu_opens_and_does_not_count_is_no_figure(loops: dict[str, Any]) -> None:
    assert all(sample["llc_misses"] is None for sample in loops["samples"])
    assert any(note.startswith("llc_misses: stayed 0 between samples") for note in loops["notes"])


def test_every_sample_of_a_known_loop_lies_inside_it(loops: dict[str, Any]) -> None:
    begin_ns, end_ns = loops["between"]
    during = [sample for sample in of(loops, "main") if begin_ns <= sample["time_ns"] < end_ns]
    assert len(during) > 200
    outside = [sample for sample in during if not in_the_loop(loops, sample)]
    assert len(outside) <= 1, "the call itself"
    assert {sample["domain"] for sample in during} == {"user"}


def test_samples_times_period_are_the_counted_cycles(loops: dict[str, Any]) -> None:
    begin_ns, end_ns = loops["between"]
    during = [sample for sample in of(loops, "main") if begin_ns <= sample["time_ns"] < end_ns]
    assert loops["cycles"] == pytest.approx(CYCLES_A_TURN * TURNS, rel=0.001)
    assert sum(sample["period"] for sample in during) == pytest.approx(loops["cycles"], rel=0.01)
    assert loops["detail"]["represented_share"] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("thread", ["worker", "late"])
def test_other_threads_are_sampled_too_whenever_they_began(loops: dict[str, Any], thread: str) -> None:
    inside = [sample for sample in of(loops, thread) if in_the_loop(loops, sample)]
    cycles = sum(sample["period"] for sample in inside)
    assert cycles == pytest.approx(CYCLES_A_TURN * WORKERS_TURNS, rel=0.02)


def test_each_sample_has_the_counters_differences(loops: dict[str, Any]) -> None:
    """CPI is 2 in the emulation: of every single sample, since the group is read at once."""
    samples = loops["samples"]
    assert all(sample["cycles"] == 2 * sample["instructions"] for sample in samples)
    begin_ns, end_ns = loops["between"]
    during = [sample for sample in of(loops, "main") if begin_ns <= sample["time_ns"] < end_ns]
    assert sum(sample["cycles"] for sample in during) == pytest.approx(loops["cycles"], rel=0.01)
    cpu_ns, elapsed_ns = sum(sample["cpu_ns"] for sample in during), end_ns - begin_ns
    assert 0.8 * elapsed_ns <= cpu_ns <= 1.02 * elapsed_ns, "others in the guest may have had the processor meanwhile"


def test_counters_beside_the_sampler_are_never_multiplexed(found: Results) -> None:
    """Of the six general counters and the one for cycles, each side has its own for all of the time, and both count
    the same loops."""
    result = found["counted_and_sampled"]
    held = len(result["held"][0]["events"]) - 1  # but for cycles, which has the counter of its own
    (note,) = [note for note in result["notes"] if "general counters are free" in note]
    assert note.startswith(f"{6 - held} of 6 general counters are free (the own counter of cycles not)")
    assert note.endswith("the sampler has the others in this pass. Try: --no-sampler")
    assert all(row["running_ns"] == row["enabled_ns"] for row in result["rows"])
    counted = {(row["span"], row["event"]): row["value"] for row in result["rows"] if row["tid"] == result["main"]}
    for span, names in enumerate(result["event_sets"]):
        hardware = [name for name in names if name[:5] in ("cycle", "instr", "again")]
        assert len(hardware) == 6 - held
        for name in hardware:
            instructions = counted[span, name] / (2 if name == "cycles" else 1)
            assert instructions == pytest.approx(2 * A_LITTLE, rel=0.01)
    assert {name for names in result["event_sets"] for name in names} >= {"cycles", "instructions", "again9"}
    cycles = CYCLES_A_TURN * A_LITTLE * len(result["event_sets"])
    assert result["sampled_cycles"] == pytest.approx(cycles, rel=0.02)
    assert result["sampled_instructions"] == pytest.approx(cycles / 2, rel=0.02)


def test_paranoid_3_refuses_an_ordinary_user_with_the_remedy(found: Results) -> None:
    result = found["ordinary_samplers"]["3"]
    assert not result["ok"]
    assert result["reason"] == "kernel.perf_event_paranoid is 3: ordinary users may not count anything"
    assert result["remedy"] == "sudo sysctl kernel.perf_event_paranoid=1"
    assert (result["refused"], result["refused_remedy"]) == (result["reason"], result["remedy"])


def test_paranoid_2_samples_an_ordinary_users_own_code(found: Results) -> None:
    result = found["ordinary_samplers"]["2"]
    assert result["ok"] and result["detail"]["event"] == "cycles"
    assert result["domains"] == ["user"]
    assert result["inside"] > 20
    assert result["switches"] > 0 and result["mappings"] > 0
    assert any("user code only" in note and "sudo sysctl" in note for note in result["notes"])


def test_paranoid_1_samples_the_kernels_part_too(found: Results) -> None:
    result = found["ordinary_samplers"]["1"]
    assert result["ok"] and result["detail"]["kernel"] is True
    assert "user" in result["domains"] and result["inside"] > 20
    assert not any("user code only" in note for note in result["notes"])


def test_without_a_pmu_processor_time_is_sampled_and_the_note_says_why(found_without_pmu: Results) -> None:
    result = found_without_pmu["sample_a_little"]
    assert result["ok"] and result["detail"]["event"] == "cpu-clock"
    assert result["inside"] > 20
    assert any("samples by cpu-clock" in note and "no PMU" in note for note in result["notes"])
