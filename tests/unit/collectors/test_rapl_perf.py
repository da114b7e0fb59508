"""Energy through perf's PMU ``power``, where powercap is not allowed: a driver's recorded files, a made-up kernel."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from collectors.rapl import powercap
from collectors.rapl.collector import RaplCollector
from collectors.rapl.power_pmu import find_domains
from hwprof.collector.contract import PassContext
from tests.support.reported import fields
from tests.support.uncore_machines import Kernel, intel, open_descriptors, plant_machine, plant_pmu

JOULES: float = 2.3283064365386962890625e-10
"""Of one count, in the driver's own words."""

SCALE = "2.3283064365386962890625e-10"
CODES = {"energy-cores": 1, "energy-pkg": 2, "energy-ram": 3, "energy-gpu": 4, "energy-psys": 5}


def described(*events: str, unit: str = "Joules") -> dict[str, str]:
    """The files of the driver's folder ``events``."""
    codes = {event: f"event=0x{CODES[event]:02x}" for event in events}
    scales = {f"{event}.scale": SCALE for event in events}
    return codes | scales | {f"{event}.unit": unit for event in events}


@pytest.fixture
def two_sockets(tmp_path: Path) -> Path:
    plant_machine(tmp_path, intel(0x8F), {0: 0, 1: 0, 56: 1, 57: 1})
    plant_pmu(
        tmp_path, "power", {"event": "config:0-7"}, "0,56", **described("energy-pkg", "energy-ram", "energy-psys")
    )
    return tmp_path


def run(root: Path) -> RaplCollector:
    found = RaplCollector(root)
    found.start(PassContext("measure", 1, 1, root, {}))
    return found


def test_domains_are_named_as_powercap_names_them(two_sockets: Path) -> None:
    names = ["package-0", "psys", "package-0/dram", "package-1", "package-1/dram"]
    assert sorted(domain.name for domain in find_domains(two_sockets)) == sorted(names)


def test_counts_become_joules_by_the_drivers_scale(two_sockets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel().install(monkeypatch)
    run(two_sockets).stop()  # polars opens some of its own, and keeps them, when it is first used
    before = open_descriptors()
    assert fields(RaplCollector(two_sockets).availability().detail)["zones"]
    assert open_descriptors() == before
    running = run(two_sockets)
    kernel.count(CODES["energy-pkg"], 0, 1 << 33)
    kernel.count(CODES["energy-ram"], 56, 1 << 32)
    series = running.stop().tables["series"]
    assert open_descriptors() == before
    last = dict(series.group_by("name").last().select("name", "value").iter_rows())
    assert last.pop("energy/package-0") == pytest.approx((1 << 33) * JOULES) == pytest.approx(2.0)
    assert last.pop("energy/package-1/dram") == pytest.approx(1.0)
    assert set(last.values()) == {0.0}


def test_powercap_comes_first(two_sockets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both tell of the same silicon."""
    kernel = Kernel().install(monkeypatch)
    folder = two_sockets / "sys/class/powercap/intel-rapl:0"
    folder.mkdir(parents=True)
    (folder / "name").write_text("package-0\n")
    (folder / "energy_uj").write_text("7\n")
    assert fields(RaplCollector(two_sockets).availability().detail)["zones"] == ["package-0"]
    assert kernel.groups == {}


def test_perf_serves_where_powercap_is_for_root(two_sockets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Kernel().install(monkeypatch)
    folder = two_sockets / "sys/class/powercap/intel-rapl:0"
    folder.mkdir(parents=True)
    (folder / "energy_uj").write_text("7\n")

    def refuse(zone: powercap.Zone) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(powercap.Zone, "open", refuse)
    found = RaplCollector(two_sockets).availability()
    assert found.ok
    assert "psys" in fields(found.detail)["zones"]
    assert found.notes == ()


def test_one_package_that_is_refused_is_told(two_sockets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Kernel(refused=lambda event, cpu: errno.ENODEV if cpu == 56 else None).install(monkeypatch)
    found = RaplCollector(two_sockets).availability()
    assert sorted(fields(found.detail)["zones"]) == ["package-0", "package-0/dram", "psys"]
    assert [note.subject for note in found.notes] == ["package-1, package-1/dram"]


def test_who_may_not_count_the_whole_machine_is_told_what_to_do(
    two_sockets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Kernel(refused=lambda event, cpu: errno.EACCES).install(monkeypatch)
    found = RaplCollector(two_sockets).availability()
    assert (found.ok, found.remedy) == (False, "sudo sysctl kernel.perf_event_paranoid=0")


@pytest.mark.parametrize("unit", ["Fortnights", ""])
def test_another_unit_is_no_energy(tmp_path: Path, unit: str) -> None:
    plant_machine(tmp_path, intel(0x8F), {0: 0})
    plant_pmu(tmp_path, "power", {"event": "config:0-7"}, "0", **described("energy-pkg", unit=unit))
    assert find_domains(tmp_path) == []


def test_dies_of_one_package_are_told_apart(tmp_path: Path) -> None:
    plant_machine(tmp_path, intel(0x8F), {0: 0, 8: 0})
    plant_pmu(tmp_path, "power", {"event": "config:0-7"}, "0,8", **described("energy-pkg"))
    assert [domain.name for domain in find_domains(tmp_path)] == ["package-0", "package-0 (processor 8)"]
