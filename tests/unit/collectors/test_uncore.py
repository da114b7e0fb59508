"""A run that reads made-up memory controllers; and why there is none."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from collectors.uncore.collector import UncoreCollector
from collectors.uncore.controllers import READ, WRITE, make_plan
from collectors.uncore.traffic import TrafficLog
from hwprof.collector.contract import PassContext
from tests.support.reported import fields
from tests.support.uncore_machines import (
    DF_FORMATS,
    Kernel,
    amd,
    event,
    intel,
    open_descriptors,
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


def test_a_run_reads_all_and_gives_every_descriptor_back(xeon: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel().install(monkeypatch)
    run(xeon, lambda: None)  # polars opens some of its own, and keeps them, when it is first used
    before = open_descriptors()

    def work() -> None:
        assert open_descriptors() == before + 32
        kernel.count(0xCF05, cpu=0, lines=1000)
        kernel.count(0xCF05, cpu=56, lines=500)

    last, _ = run(xeon, work)
    assert open_descriptors() == before
    assert last[READ] == last[f"{READ}/socket-0"] + last[f"{READ}/socket-1"] == 64 * 8 * 1500
    assert last[WRITE] == 0


def test_a_channel_that_cannot_be_opened_makes_the_sum_none(xeon: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = int((xeon / "sys/bus/event_source/devices/uncore_imc_3/type").read_text())
    busy = Kernel(refused=lambda event, cpu: errno.EBUSY if (event.type, cpu) == (kind, 56) else None)
    busy.install(monkeypatch)
    before = open_descriptors()
    last, notes = run(xeon, lambda: busy.count(0xF005, cpu=0, lines=1))
    assert last == {f"{READ}/socket-0": 0, f"{WRITE}/socket-0": 64 * 8}
    assert notes[1:] == [
        f"{READ}, {READ}/socket-1, {WRITE}, {WRITE}/socket-1 not available:"
        " uncore_imc_3 on processor 56 cannot be opened (Device or resource busy)"
    ]
    assert open_descriptors() == before


def test_a_member_that_cannot_be_opened_leaves_nothing_open(xeon: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Kernel(refused=lambda event, cpu: errno.EMFILE if event.config == 0xF005 else None).install(monkeypatch)
    before = open_descriptors()
    found = UncoreCollector(xeon).availability()
    assert open_descriptors() == before
    assert (found.ok, found.remedy) == (False, "raise the limit: ulimit -n 65536")


@pytest.mark.parametrize(("reading_ms", "period_ms"), [(0.05, 10), (0.1, 10), (0.3, 30), (2.5, 250)])
def test_many_controllers_are_read_less_often(
    epyc: Path, monkeypatch: pytest.MonkeyPatch, reading_ms: float, period_ms: float
) -> None:
    """Reading takes at most a hundredth of one processor."""
    Kernel().install(monkeypatch)
    monkeypatch.setattr(TrafficLog, "reading_us", lambda log: 1e3 * reading_ms)
    collector = UncoreCollector(epyc)
    collector.start(PassContext("measure", 1, 1, epyc, {}))
    assert fields(collector.stop().detail)["period_ms"] == period_ms


def test_stop_without_start(tmp_path: Path) -> None:
    assert UncoreCollector(tmp_path).stop().tables == {}


def test_available(epyc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Kernel().install(monkeypatch)
    found = UncoreCollector(epyc).availability()
    assert found.ok and found.notes == ()
    assert fields(found.detail)["series"] == [READ, WRITE]
    assert len(fields(found.detail)["pmus"]) == 12


@pytest.mark.parametrize("level", [1, 2])
def test_an_ordinary_user_may_not(epyc: Path, monkeypatch: pytest.MonkeyPatch, level: int) -> None:
    (epyc / "proc/sys/kernel/perf_event_paranoid").write_text(f"{level}\n")
    Kernel(refused=lambda event, cpu: errno.EACCES).install(monkeypatch)
    found = UncoreCollector(epyc).availability()
    assert found.reason == f"kernel.perf_event_paranoid is {level}: ordinary users may not count what all programs do"
    assert found.remedy == "sudo sysctl kernel.perf_event_paranoid=0 (or give hwprof CAP_PERFMON)"


def test_a_container_may_not(epyc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (epyc / ".dockerenv").touch()
    Kernel(refused=lambda event, cpu: errno.EPERM).install(monkeypatch)
    found = UncoreCollector(epyc).availability()
    assert found.remedy is not None and "--cap-add PERFMON" in found.remedy


def test_a_virtual_machine_shows_none(tmp_path: Path) -> None:
    plant_machine(tmp_path, amd(0x19, 0x11), {0: 0})
    (tmp_path / "proc/cpuinfo").write_text("processor\t: 0\n" + amd(0x19, 0x11) + "\nflags\t\t: fpu lm hypervisor\n")
    found = UncoreCollector(tmp_path).availability()
    assert found.reason == "a virtual machine does not show the memory controllers' counters"
    assert found.remedy == "measure DRAM traffic on the machine itself"


@pytest.mark.parametrize(("family", "model"), [(0x19, 0x11), (0x19, 0x01)])
def test_no_driver(tmp_path: Path, family: int, model: int) -> None:
    plant_machine(tmp_path, amd(family, model), {0: 0})
    found = UncoreCollector(tmp_path).availability()
    assert found.reason is not None and found.reason.startswith("the kernel shows no PMU called amd_")
    assert found.remedy is not None and "sudo modprobe amd_uncore" in found.remedy


def test_a_processor_that_the_catalogue_does_not_know(tmp_path: Path) -> None:
    plant_machine(tmp_path, intel(1), {0: 0})
    found = UncoreCollector(tmp_path).availability()
    assert found.reason == "the event catalogue does not know this processor (Xeon)"


def test_a_processor_without_such_events(tmp_path: Path) -> None:
    plant_machine(tmp_path, "CPU implementer\t: 0x41\nCPU part\t: 0xd0c", {0: 0}, pmu="armv8_pmuv3_0")
    found = UncoreCollector(tmp_path).availability()
    assert found.reason == "the event catalogue has no memory controllers' events of Arm Neoverse N1"


def test_a_driver_that_lacks_a_term_of_the_event(tmp_path: Path) -> None:
    plant_machine(tmp_path, amd(0x19, 0x11), {0: 0})
    plant_pmu(tmp_path, "amd_umc_0", {"event": "config:0-7"}, "0")
    found = UncoreCollector(tmp_path).availability()
    assert found.reason == "the PMU amd_umc_0 has no term 'rdwrmask'"


def test_a_unit_that_names_no_processor_is_not_there(epyc: Path) -> None:
    plant_pmu(epyc, "amd_df", DF_FORMATS, None)
    plan = make_plan(epyc, {READ: [event("reads", "event=1", "amd_df")]})
    assert (plan.groups, list(plan.missing)) == ((), [READ])


def test_a_sum_without_one_of_its_terms_is_none(epyc: Path) -> None:
    reads, elsewhere, writes = (
        event("reads", "event=0x0a,rdwrmask=0x1", "amd_umc"),
        event("reads of another unit", "event=1", "amd_df"),
        event("writes", "event=0x0a,rdwrmask=0x2", "amd_umc"),
    )
    plan = make_plan(epyc, {READ: [reads, elsewhere], WRITE: [writes]})
    assert plan.series == (WRITE,)
    assert {name: why.reason for name, why in plan.missing.items()} == {READ: "the kernel shows no PMU called amd_df"}
