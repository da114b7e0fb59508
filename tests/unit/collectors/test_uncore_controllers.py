"""Which counters of made-up servers' memory controllers are read, and what they add up to."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.uncore.controllers import READ, TOTAL, WRITE, dram_events, dram_recipes, make_plan
from hwprof.hardware.catalogue import Microarchitecture, microarchitectures
from hwprof.hardware.metrics import operands
from tests.support.uncore_machines import (
    DF_FORMATS,
    INTEL_FORMATS,
    UMC_FORMATS,
    Kernel,
    amd,
    event,
    intel,
    known,
    plant_machine,
    plant_pmu,
    planted_epyc,
    planted_xeon,
    run,
)


@pytest.fixture
def xeon(tmp_path: Path) -> Path:
    return planted_xeon(tmp_path)


@pytest.fixture
def epyc(tmp_path: Path) -> Path:
    return planted_epyc(tmp_path)


def test_every_controller_of_every_socket_is_counted_on_the_processor_that_stands_for_it(xeon: Path) -> None:
    plan = make_plan(xeon, dram_events(known("intel-sapphire-rapids").catalogue))
    assert [(group.pmu, group.cpu) for group in plan.groups] == [
        (f"uncore_imc_{number}", cpu) for number in range(8) for cpu in (0, 56)
    ]
    assert [(part.code.config, part.bytes_per_count, part.series) for part in plan.groups[1].parts] == [
        (0xCF05, 64, (READ, f"{READ}/socket-1")),
        (0xF005, 64, (WRITE, f"{WRITE}/socket-1")),
    ]
    assert plan.series == (
        READ, WRITE, f"{READ}/socket-0", f"{READ}/socket-1", f"{WRITE}/socket-0", f"{WRITE}/socket-1",
    )  # fmt: skip
    assert plan.missing == {}


def test_sub_channels_are_counted_together_and_added_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Granite Rapids."""
    plant_machine(tmp_path, intel(0xAD), {0: 0, 56: 1})
    for number in range(12):
        plant_pmu(tmp_path, f"uncore_imc_{number}", INTEL_FORMATS, "0,56")
    kernel = Kernel().install(monkeypatch)

    def work() -> None:
        kernel.count(0xCF05, cpu=0, lines=1)
        kernel.count(0xCF06, cpu=0, lines=10)
        kernel.count(0xF006, cpu=56, lines=100)

    last, notes = run(tmp_path, work)
    assert len(kernel.enabled) == 24
    assert (last[READ], last[WRITE]) == (64 * 12 * 11, 64 * 12 * 100)
    assert (last[f"{WRITE}/socket-0"], last[f"{WRITE}/socket-1"]) == (0, 64 * 12 * 100)
    assert len(notes) == 1


def test_one_socket_has_no_series_of_its_own(epyc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel().install(monkeypatch)

    def work() -> None:
        kernel.count(0x10A, cpu=0, lines=5)
        kernel.count(0x20A, cpu=0, lines=3)

    last, notes = run(epyc, work)
    assert last == {READ: 64 * 12 * 5, WRITE: 64 * 12 * 3}
    assert len(notes) == 1 and "whole machine" in notes[0]


def test_controllers_numbered_through_both_sockets(tmp_path: Path) -> None:
    """AMD's way: each controller is on one socket only."""
    plant_machine(tmp_path, amd(0x19, 0x11), {0: 0, 96: 1})
    for number in range(24):
        plant_pmu(tmp_path, f"amd_umc_{number}", UMC_FORMATS, "0" if number < 12 else "96")
    plan = make_plan(tmp_path, dram_events(known("amd-zen4").catalogue))
    on = [part.series for group in plan.groups for part in group.parts]
    assert on.count((READ, f"{READ}/socket-0")) == on.count((WRITE, f"{WRITE}/socket-1")) == 12
    assert len(plan.groups) == 24


def test_reads_and_writes_that_the_processor_does_not_tell_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zen 3: eight channels on the four counters of one PMU, so two groups that take turns."""
    plant_machine(tmp_path, amd(0x19, 0x01), {0: 0})
    plant_pmu(tmp_path, "amd_df", DF_FORMATS, "0")
    kernel = Kernel(share=0.5).install(monkeypatch)
    last, notes = run(tmp_path, lambda: kernel.count(0x3807, cpu=0, lines=100))
    assert [len(keys) for keys in list(kernel.groups.values())[-2:]] == [4, 4]
    assert last == {TOTAL: 64 * 100 * 2}
    assert any("multiplexed: 2 of 2 groups" in note and "50%" in note for note in notes)


def test_an_event_of_the_driver_has_the_drivers_scale(tmp_path: Path) -> None:
    plant_machine(tmp_path, intel(151), {0: 0})
    driver = {"data_read": "event=0xff,umask=0x20", "data_read.scale": "6.103515625e-5", "data_read.unit": "MiB"}
    plant_pmu(tmp_path, "uncore_imc_free_running_0", INTEL_FORMATS, "0", **driver)
    plant_pmu(tmp_path, "uncore_imc_free_running_1", INTEL_FORMATS, "0", data_read="event=0xff,umask=0x20")
    plan = make_plan(tmp_path, {READ: [event("data_read", "data_read", "uncore_imc_free_running")]})
    first, second = (group.parts[0] for group in plan.groups)
    assert (first.code.config, first.bytes_per_count) == (0x20FF, 64)
    assert second.bytes_per_count == 64  # no unit there: the catalogue's weight


def test_without_a_topology_sockets_are_not_told_apart(xeon: Path) -> None:
    (xeon / "sys/devices/system/cpu/cpu56/topology/physical_package_id").unlink()
    assert make_plan(xeon, dram_events(known("intel-sapphire-rapids").catalogue)).series == (READ, WRITE)


@pytest.mark.parametrize("kind", microarchitectures(), ids=lambda kind: str(kind.id))
def test_the_catalogues_weights_are_its_recipes_coefficients(kind: Microarchitecture) -> None:
    """Bytes a count, by which the readings are multiplied, and bytes per nanosecond, which the metric says."""
    for recipe in dram_recipes(kind.catalogue).values():
        names = operands(recipe.of)
        for name in names:
            formula = recipe.of
            for other in names:
                formula = formula.replace(f'"{other}"', "1" if other == name else "0")
            named = kind.catalogue.named()[name]
            assert recipe.scale * eval(formula) == named.weight
            assert (named.scope, recipe.per) == ("socket", '"counted-time"')
            assert named.unit == "B"
