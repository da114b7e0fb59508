"""Which PAPI events are counted and in which sets, with a PAPI that is made up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from collectors.papi import PapiCollector
from collectors.papi.library import ECNFLCT, ENOEVNT, EPERM, Papi, PapiError
from collectors.papi.plan import TASK_CLOCK, Plan, make_plan
from hwprof.errors import HwprofError, UsageError
from hwprof.hardware import catalogue
from hwprof.session.collector import PassContext

MAIN = 7
SOFTWARE = [TASK_CLOCK, "perf::PAGE-FAULTS", "perf::CONTEXT-SWITCHES", "perf::CPU-MIGRATIONS"]


class FakePapi(Papi):
    """A machine with some events and some counters. ``cost`` is how many counters an event takes."""

    path = "/made/up/libpapi.so"
    version = "7.0.0"
    component = 0

    def __init__(
        self,
        presets: Sequence[str] = (),
        counters: int = 4,
        *,
        silent: Sequence[str] = (),
        elsewhere: Sequence[str] = (),
        cost: dict[str, int] | None = None,
        kernel: bool = True,
        pmu: bool = True,
        disabled: str | None = None,
    ) -> None:
        self.presets, self.counters, self.silent, self.elsewhere = presets, counters, silent, elsewhere
        self.cost = cost or {}
        self.kernel_allowed, self.pmu, self.disabled = kernel, pmu, disabled
        self.kernel = False
        self.open: dict[int, list[str]] = {}
        self.opened = 0

    def why_disabled(self) -> str | None:
        return self.disabled

    def code(self, name: str) -> int | None:
        known = [*self.presets, *SOFTWARE, *self.elsewhere]
        return known.index(name) if name in known else -1 if name in catalogue.catalogue("papi").named() else None

    def component_of(self, code: int) -> str:
        return "rapl" if code >= len(self.presets) + len(SOFTWARE) else "perf_event"

    def has(self, name: str) -> bool:
        return name in self.presets

    def count_kernel(self, kernel: bool) -> None:
        self.kernel = kernel

    def open_set(self, events: Sequence[str], tid: int | None) -> int:
        if tid is not None and not self.pmu:
            raise PapiError(ENOEVNT, "Event does not exist")
        if self.kernel and not self.kernel_allowed:
            raise PapiError(EPERM, "Permission level does not permit operation")
        hardware = [name for name in events if name not in SOFTWARE]
        if not set(hardware) <= set(self.presets):
            raise PapiError(ENOEVNT, "Event does not exist")
        if sum(self.cost.get(name, 1) for name in hardware) > self.counters:
            raise PapiError(ECNFLCT, "hardware resource limits")
        self.opened += 1
        self.open[self.opened] = list(events)
        return self.opened

    def start(self, number: int) -> None:
        assert number in self.open

    def stop(self, number: int) -> None:
        assert number in self.open

    def close_set(self, number: int) -> None:
        del self.open[number]

    def values(self, number: int, events: int) -> tuple[int, ...]:
        names = self.open[number]
        assert len(names) == events
        return tuple(0 if name in self.silent else 1000 for name in names)


def plan_of(papi: FakePapi, names: Sequence[str] | None = None, kernel: bool | None = None) -> Plan:
    plan = make_plan(papi, names, kernel=kernel, main_tid=MAIN)
    assert not papi.open, "a trial left event sets open"
    return plan


def test_defaults_are_the_default_presets_that_the_machine_has_and_the_software_events() -> None:
    plan = plan_of(FakePapi(["PAPI_TOT_INS", "PAPI_TOT_CYC", "PAPI_LD_INS"]))
    assert [event_set.names for event_set in plan.sets] == [("PAPI_TOT_CYC", "PAPI_TOT_INS", *SOFTWARE)]
    assert plan.hardware == ["PAPI_TOT_CYC", "PAPI_TOT_INS"]
    assert not plan.dropped and plan.kernel and plan.attaches


def test_events_that_conflict_are_split_and_core_events_are_in_every_set() -> None:
    presets = [
        "PAPI_TOT_CYC",
        "PAPI_TOT_INS",
        "PAPI_L1_DCM",
        "PAPI_L1_DCA",
        "PAPI_L2_TCM",
        "PAPI_L2_TCA",
        "PAPI_BR_MSP",
    ]
    plan = plan_of(FakePapi(presets, counters=4), presets)
    sets = [event_set.names for event_set in plan.sets]
    assert sets == [
        ("PAPI_TOT_CYC", "PAPI_TOT_INS", "PAPI_L1_DCM", "PAPI_L1_DCA"),
        ("PAPI_TOT_CYC", "PAPI_TOT_INS", "PAPI_L2_TCM", "PAPI_L2_TCA"),
        ("PAPI_TOT_CYC", "PAPI_TOT_INS", "PAPI_BR_MSP"),
    ]


def test_a_topic_that_does_not_fit_as_a_whole_is_counted_piece_by_piece() -> None:
    """Derived presets take several counters."""
    presets = ["PAPI_TOT_CYC", "PAPI_L1_DCM", "PAPI_L1_DCA", "PAPI_L1_DCR"]
    papi = FakePapi(presets, counters=4, cost={"PAPI_L1_DCM": 2, "PAPI_L1_DCA": 2})
    assert [event_set.names for event_set in plan_of(papi, presets).sets] == [
        ("PAPI_TOT_CYC", "PAPI_L1_DCM"),
        ("PAPI_TOT_CYC", "PAPI_L1_DCA", "PAPI_L1_DCR"),
    ]


def test_core_events_that_do_not_even_fit_together_are_counted_in_turn() -> None:
    presets = ["PAPI_TOT_CYC", "PAPI_TOT_INS", "PAPI_BR_MSP"]
    plan = plan_of(FakePapi(presets, counters=1), [*presets, TASK_CLOCK])
    assert [event_set.names for event_set in plan.sets] == [(name, TASK_CLOCK) for name in presets]


def test_an_event_beside_which_core_events_have_no_room_is_counted_alone() -> None:
    presets = ["PAPI_TOT_CYC", "PAPI_TOT_INS", "PAPI_SP_OPS"]
    plan = plan_of(FakePapi(presets, counters=4, cost={"PAPI_SP_OPS": 4}), presets)
    assert [event_set.names for event_set in plan.sets] == [("PAPI_SP_OPS",)]
    assert set(plan.events) | set(plan.dropped) == set(presets)


def test_the_task_clock_is_in_every_set_and_shown_only_if_asked_for() -> None:
    (event_set,) = plan_of(FakePapi(["PAPI_TOT_CYC"]), ["PAPI_TOT_CYC"]).sets
    assert event_set.names == ("PAPI_TOT_CYC",)
    assert event_set.counted == ("PAPI_TOT_CYC", TASK_CLOCK)


def reason_of(papi: FakePapi, name: str, kernel: bool | None = None) -> str:
    plan = plan_of(papi, [name], kernel)
    assert not plan.sets and not plan.events
    return plan.dropped[name].reason


def test_every_event_that_is_not_counted_has_its_reason() -> None:
    offers = "this machine's PMU does not offer PAPI_L1_DCM (PAPI: Event does not exist)"
    assert reason_of(FakePapi(), "PAPI_L1_DCM") == offers
    assert "stays 0 where it must count" in reason_of(
        FakePapi(["PAPI_TOT_INS"], silent=["PAPI_TOT_INS"]), "PAPI_TOT_INS"
    )
    assert "component rapl" in reason_of(FakePapi(elsewhere=["rapl:::PKG"]), "rapl:::PKG")
    assert "never gets a hardware counter" in reason_of(FakePapi(["PAPI_TOT_CYC"], counters=0), "PAPI_TOT_CYC")
    assert "which this user may not count" in reason_of(FakePapi(kernel=False), "perf::CONTEXT-SWITCHES")
    assert "left out as asked" in reason_of(FakePapi(), "perf::CONTEXT-SWITCHES", kernel=False)


def test_a_quiet_machine_may_well_show_no_event_of_a_kind() -> None:
    """Only what a busy loop must move is dropped for staying 0."""
    papi = FakePapi(["PAPI_BR_MSP"], silent=["PAPI_BR_MSP"])
    assert plan_of(papi, ["PAPI_BR_MSP"]).hardware == ["PAPI_BR_MSP"]


def test_a_name_that_papi_does_not_know_is_the_users_mistake() -> None:
    with pytest.raises(UsageError) as raised:
        plan_of(FakePapi(), ["PAPI_TOT_CYCLES"])
    assert "'PAPI_TOT_CYCLES'" in str(raised.value) and "papi_native_avail" in str(raised.value)
    collector = PapiCollector(FakePapi)
    with pytest.raises(UsageError):
        collector.start(PassContext("measure", MAIN, MAIN, Path(), {"events": ["PAPI_TOT_CYCLES"]}))


@pytest.mark.parametrize("kernel", [True, False])
def test_user_code_only_where_no_more_is_allowed(kernel: bool) -> None:
    papi = FakePapi(["PAPI_TOT_CYC"], kernel=kernel)
    plan = plan_of(papi, None)
    assert (plan.kernel, papi.kernel) == (kernel, kernel)
    assert ("perf::CONTEXT-SWITCHES" in plan.events) == kernel


def availability_of(load: Callable[[], Papi]) -> tuple[bool, str, str]:
    found = PapiCollector(load).availability()
    return found.ok, found.reason or "", found.remedy or ""


def test_a_component_that_papi_disabled_tells_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hwprof.hardware.perf_event.paranoid_level", lambda: 2)
    ok, reason, remedy = availability_of(lambda: FakePapi(disabled="Unknown libpfm4 related error"))
    assert not ok
    assert reason == "PAPI 7.0.0 (/made/up/libpapi.so) counts nothing here: Unknown libpfm4 related error"
    assert "newer PAPI" in remedy
    monkeypatch.setattr("hwprof.hardware.perf_event.paranoid_level", lambda: 3)
    disabled = "perf_event support disabled by Linux with paranoid=3"
    assert availability_of(lambda: FakePapi(disabled=disabled))[2] == "sudo sysctl kernel.perf_event_paranoid=1"


def test_without_the_library_the_reason_says_how_to_get_it() -> None:
    def load() -> Papi:
        raise HwprofError("libpapi is not installed", "sudo apt-get install libpapi-dev")

    assert availability_of(load) == (False, "libpapi is not installed", "sudo apt-get install libpapi-dev")


def test_without_a_pmu_the_note_says_that_only_the_main_thread_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hwprof.hardware.perf_event.core_pmu_counts", lambda: False)
    found = PapiCollector(lambda: FakePapi(pmu=False)).availability()
    assert found.ok and found.detail["every_thread"] is False
    assert found.detail["software"] == SOFTWARE and found.detail["hardware"] == []
    assert any(note.startswith("software events only") for note in found.notes)
    assert any("main thread only" in note and "perf counts every thread" in note for note in found.notes)
