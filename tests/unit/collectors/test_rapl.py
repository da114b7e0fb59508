from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.rapl.collector import RaplCollector, period_s
from collectors.rapl.energy_log import EnergyLog, Pace
from collectors.rapl.powercap import Unwrapped, find_zones
from hwprof.collector.contract import PassContext
from hwprof.run.details import EnergyDetail
from hwprof.run.schema import TABLES
from tests.support.reported import texts

MAX_UJ = 262143328850


def plant(root: Path, zones: dict[str, tuple[str, int]], max_uj: int = MAX_UJ) -> Path:
    """A powercap tree: folder -> (name, energy in microjoules)."""
    for folder, (name, energy_uj) in zones.items():
        place = root / "sys/class/powercap" / folder
        place.mkdir(parents=True)
        (place / "name").write_text(name + "\n")
        (place / "energy_uj").write_text(f"{energy_uj}\n")
        (place / "max_energy_range_uj").write_text(f"{max_uj}\n")
    (root / "sys/class/powercap/intel-rapl").mkdir(parents=True, exist_ok=True)  # the control type: no counter
    return root


TWO_SOCKETS = {
    "intel-rapl:0": ("package-0", 1_000_000),
    "intel-rapl:0:0": ("core", 500_000),
    "intel-rapl:0:1": ("dram", 250_000),
    "intel-rapl:1": ("package-1", 2_000_000),
    "intel-rapl:1:0": ("core", 0),
    "intel-rapl:1:1": ("dram", 0),
    "intel-rapl:2": ("psys", 9_000_000),
    "intel-rapl:10": ("package-2", 0),
    "intel-rapl-mmio:0": ("package-0", 1_000_000),
}


def names(root: Path) -> list[str]:
    return [zone.name for zone in find_zones(root)]


def test_zones_are_named_by_what_contains_them_and_counted_once(tmp_path: Path) -> None:
    assert names(plant(tmp_path, TWO_SOCKETS)) == [
        "package-0",
        "package-0/core",
        "package-0/dram",
        "package-1",
        "package-1/core",
        "package-1/dram",
        "psys",
        "package-2",
    ]


def test_zones_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    root = plant(tmp_path, {"intel-rapl:0": ("package-0", 0), "intel-rapl:1": ("package-0", 0)})
    assert names(root) == ["package-0 (intel-rapl:0)", "package-0 (intel-rapl:1)"]


def test_a_wrapped_counter_goes_on() -> None:
    counter = Unwrapped(max_uj=999)
    assert [round(counter.add(value) * 1e6) for value in (990, 999, 0, 5, 5)] == [0, 9, 10, 15, 15]


def test_without_a_range_a_counter_that_goes_back_began_again() -> None:
    counter = Unwrapped(max_uj=0)
    assert [round(counter.add(value) * 1e6) for value in (990, 1000, 7)] == [0, 10, 17]


@given(st.integers(1, 10**12), st.integers(0), st.lists(st.integers(0)))
def test_unwrapping_gives_back_the_true_energy(max_uj: int, start: int, steps: list[int]) -> None:
    """Whatever the range, as long as less than a full turn lies between two readings."""
    true_uj, counter = start, Unwrapped(max_uj)
    counter.add(true_uj % (max_uj + 1))
    for step in steps:
        true_uj += step % (max_uj + 1)
        joules = counter.add(true_uj % (max_uj + 1))
        assert joules == (true_uj - start) / 1e6


class Told:
    """A meter that tells what it is told to; None: it cannot be read."""

    def __init__(self, name: str, *joules: float | None) -> None:
        self.name = name
        self.asked = 0
        self._joules = joules

    def open(self) -> None: ...

    def joules(self) -> float:
        self.asked += 1
        joules = self._joules[self.asked - 1]
        if joules is None:
            raise OSError("No such device")
        return joules

    def close(self) -> None: ...


def test_the_log_has_a_row_for_each_zone_and_moment() -> None:
    clock = iter(range(1_000, 2_000, 10))
    log = EnergyLog([Told("package-0", 0.0, 0.001, 0.002), Told("psys", 0.0, 0.00001, 0.00002)], lambda: next(clock))
    assert [log.sample() for _ in range(3)] == [True] * 3
    series = log.series()
    assert series.schema == TABLES["series"]
    assert series.drop("pass").rows() == [
        (1000, "energy/package-0", "J", 0.0),
        (1010, "energy/psys", "J", 0.0),
        (1020, "energy/package-0", "J", 0.001),
        (1030, "energy/psys", "J", 0.00001),
        (1040, "energy/package-0", "J", 0.002),
        (1050, "energy/psys", "J", 0.00002),
    ]


def test_a_zone_that_goes_away_is_given_up_and_told() -> None:
    log = EnergyLog([Told("gone", None), Told("stays", 1.0)])
    assert log.sample()
    assert set(log.failures) == {"gone"}
    assert set(log.series()["name"]) == {"energy/stays"}
    assert not EnergyLog([Told("gone", None)]).sample()


def test_a_zone_that_was_given_up_is_not_read_again() -> None:
    flickers, stays = Told("flickers", None, 1.0), Told("stays", 1.0, 1.0)
    log = EnergyLog([flickers, stays])
    assert [log.sample() for _ in range(2)] == [True, True]
    assert (flickers.asked, stays.asked) == (1, 2)


@pytest.mark.parametrize(("apart_ns", "still"), [(100_000_000, ["psys"]), (99_000_000, [])])
def test_a_zone_that_stands_still_has_measured_nothing(apart_ns: int, still: list[str]) -> None:
    times = iter([0, 0, apart_ns, apart_ns])
    log = EnergyLog([Told("package-0", 1.0, 1.5), Told("psys", 7.0, 7.0)], clock_ns=lambda: next(times))
    assert log.sample() and log.sample()
    assert log.still() == still
    assert set(log.series()["name"]) == {"energy/package-0", "energy/psys"} - {f"energy/{name}" for name in still}


@pytest.mark.parametrize("virtual", [True, False])
def test_counters_that_stand_still_are_told_and_bring_no_joules(tmp_path: Path, virtual: bool) -> None:
    """As perf's ``power/energy-psys/`` does in some virtual machines."""
    root = plant(tmp_path, {"intel-rapl:0": ("psys", 0)})
    (root / "proc").mkdir()
    (root / "proc/cpuinfo").write_text(f"processor: 0\nvendor_id: GenuineIntel\nflags: fpu{' hypervisor' * virtual}\n")
    collector = RaplCollector(root)
    assert collector.availability().ok
    collector.start(PassContext("measure", 1, 1, tmp_path, {}))
    time.sleep(0.15)
    collected = collector.stop()
    assert collected.tables == {}
    assert isinstance(collected.detail, EnergyDetail) and collected.detail.zones == []
    (note,) = texts(collected.notes)
    assert "energy of psys not available: its counter stands still" in note and "--power-command" in note
    assert ("virtual machine" in note) is virtual


def test_no_powercap_on_bare_metal_says_which_module(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("processor: 0\nvendor_id: GenuineIntel\nflags: fpu lm\n")
    found = RaplCollector(tmp_path).availability()
    assert (found.ok, found.remedy) == (False, "sudo modprobe intel_rapl_msr")


def test_no_powercap_in_a_virtual_machine(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("processor: 0\nvendor_id: GenuineIntel\nflags: fpu lm hypervisor\n")
    found = RaplCollector(tmp_path).availability()
    assert not found.ok
    assert found.reason == "a virtual machine has no energy counters"


def test_other_processors_have_none(tmp_path: Path) -> None:
    found = RaplCollector(tmp_path).availability()
    assert found.reason == "only Intel and AMD processors have RAPL energy counters"


def refuse_to_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an ordinary user: the tests may be run by root."""

    def refuse(path: Path, flags: int) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", refuse)


def test_readable_by_root_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path, {"intel-rapl:0": ("package-0", 0)})

    refuse_to_open(monkeypatch)
    found = RaplCollector(tmp_path).availability()
    assert not found.ok
    assert found.reason == "the energy counters are readable by root only"
    assert found.remedy is not None and found.remedy.startswith("sudo chmod -R a+r /sys/class/powercap/intel-rapl/")


def test_a_run_of_the_collector(tmp_path: Path) -> None:
    root = plant(tmp_path, {"intel-rapl:0": ("package-0", 1_000_000), "intel-rapl:0:0": ("core", MAX_UJ)})
    collector = RaplCollector(root)
    assert collector.availability().ok
    collector.start(PassContext("measure", 1, 1, tmp_path, {}))
    (root / "sys/class/powercap/intel-rapl:0/energy_uj").write_text("3500000\n")
    (root / "sys/class/powercap/intel-rapl:0:0/energy_uj").write_text("499999\n")
    collected = collector.stop()
    series = collected.tables["series"]
    last = dict(series.group_by("name").last().select("name", "value").iter_rows())
    assert last == {"energy/package-0": 2.5, "energy/package-0/core": 0.5}
    assert series["time_ns"].is_sorted()
    detail = collected.detail
    assert isinstance(detail, EnergyDetail)
    assert detail.zones == ["package-0", "package-0/core"]
    assert (detail.period_ms, detail.refresh_ms) == (10, {}), "nobody saw files change that nobody writes"
    assert "whole machine" in texts(collected.notes)[0]


def test_stop_without_start(tmp_path: Path) -> None:
    assert RaplCollector(tmp_path).stop().tables == {}


class Refreshed:
    """A meter whose value is a fake clock's, refreshed every so many ns; a reading takes 100 us."""

    def __init__(self, name: str, refresh_ns: int, clock: list[int]) -> None:
        self.name, self._refresh_ns, self._clock = name, refresh_ns, clock

    def open(self) -> None: ...

    def close(self) -> None: ...

    def joules(self) -> float:
        self._clock[0] += 100_000
        return float(self._clock[0] // self._refresh_ns)


def test_how_often_a_counter_changes_is_watched_before_the_first_sample() -> None:
    clock = [0]
    meters = [Refreshed("package-0", 1_000_000, clock), Refreshed("psys", 10_000_000_000, clock)]
    pace = EnergyLog(meters, lambda: clock[0]).watch(0.02)
    assert pace.refresh_ns == {"package-0": pytest.approx(1_000_000, rel=0.05)}, "psys was never seen to change"


@pytest.mark.parametrize(
    ("refresh_ns", "reading_ns", "processors", "expected_s"),
    [
        ({"package-0": 1e6}, 2e3, 64, 0.001),  # as often as it changes
        ({"package-0": 1e6}, 2e3, 2, 0.0026),  # 52 us are 2% of it
        ({"package-0": 1e6}, 1e6, 2, 0.010),  # no seldomer than that
        ({"package-0": 1e9, "psys": 0.5e9}, 2e3, 2, 0.5),
        ({}, 2e3, 64, 0.010),
    ],
)
def test_samples_follow_the_counters_as_far_as_they_cost_little(
    refresh_ns: dict[str, float], reading_ns: float, processors: int, expected_s: float
) -> None:
    assert period_s(Pace(refresh_ns, reading_ns), processors) == pytest.approx(expected_s)
