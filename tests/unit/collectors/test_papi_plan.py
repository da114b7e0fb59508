"""Which PAPI events are counted and in which sets, with a PAPI that is made up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from collectors.papi.collector import PapiCollector
from collectors.papi.library import Papi
from collectors.papi.plan import Plan, make_plan
from hwprof.collector.contract import PassContext
from hwprof.errors import HwprofError, UsageError
from hwprof.hardware.permission import why_no_hardware
from tests.support.fake_papi import SOFTWARE, FakePapi
from tests.support.reported import fields, texts

MAIN = 7


@pytest.fixture(autouse=True)
def a_machine_with_a_pmu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hwprof.hardware.perf_event.core_pmu_counts", lambda: True)


def plan_of(papi: FakePapi, names: Sequence[str] | None = None, kernel: bool | None = None) -> Plan:
    plan = make_plan(papi, names, kernel=kernel, main_tid=MAIN)
    assert not papi.open, "a trial left event sets open"
    return plan


def hardware_sets(plan: Plan) -> list[tuple[str, ...]]:
    """The sets without the software events, which every one of them must have."""
    assert all(names[-len(SOFTWARE) :] == tuple(SOFTWARE) for names in plan.sets)
    return [names[: -len(SOFTWARE)] for names in plan.sets]


CORE = ("PAPI_TOT_CYC", "PAPI_TOT_INS")


def test_defaults_are_the_presets_of_the_default_metrics_that_the_machine_has() -> None:
    plan = plan_of(FakePapi([*CORE, "PAPI_BR_MSP", "PAPI_L2_TCM", "PAPI_LD_INS"]))
    assert hardware_sets(plan) == [(*CORE, "PAPI_BR_MSP", "PAPI_L2_TCM")]
    assert plan.kernel and plan.attaches
    assert [metric.name for metric in plan.metrics][:3] == ["cpi", "ipc", "frequency"]
    formulas = {metric.name: metric.formula for metric in plan.metrics}
    assert formulas["l2_mpki"] == '1000 * "PAPI_L2_TCM" / "PAPI_TOT_INS"'
    assert set(plan.dropped) == {"PAPI_L3_TCM"}  # every report shows llc_mpki, or why it does not
    assert "does not offer" in plan.dropped["PAPI_L3_TCM"].reason


def test_groups_and_metrics_stand_for_their_presets() -> None:
    papi = FakePapi([*CORE, "PAPI_L1_DCM", "PAPI_TLB_DM"])
    assert hardware_sets(plan_of(papi, ["tlb", "l1d_mpki"])) == [("PAPI_TOT_INS", "PAPI_L1_DCM", "PAPI_TLB_DM")]
    assert "PAPI_TLB_IM" not in plan_of(papi, ["tlb"]).dropped  # of a group, what the machine has
    assert "PAPI_TLB_IM" in plan_of(papi, ["itlb_mpki"]).dropped
    assert plan_of(papi, ["amx_busy"]).dropped["amx_busy"].reason == "no PAPI preset measures it"


def test_events_that_conflict_are_split_and_core_events_are_in_every_set() -> None:
    presets = [*CORE, "PAPI_L1_DCM", "PAPI_L1_DCA", "PAPI_L2_TCM", "PAPI_L2_TCA", "PAPI_BR_MSP"]
    metrics = ["cpi", "branch_mpki", "l1d_miss_ratio", "l2_miss_ratio"]
    assert hardware_sets(plan_of(FakePapi(presets, counters=4), metrics)) == [
        (*CORE, "PAPI_BR_MSP"),
        (*CORE, "PAPI_L1_DCM", "PAPI_L1_DCA"),
        (*CORE, "PAPI_L2_TCM", "PAPI_L2_TCA"),
    ]


def test_metrics_that_share_an_event_share_a_set() -> None:
    presets = [*CORE, "PAPI_L1_DCM", "PAPI_BR_MSP", "PAPI_L1_DCA"]
    metrics = ["cpi", "l1d_mpki", "branch_mpki", "l1d_miss_ratio"]
    assert hardware_sets(plan_of(FakePapi(presets, counters=5), metrics)) == [
        (*CORE, "PAPI_BR_MSP", "PAPI_L1_DCM", "PAPI_L1_DCA"),
    ]


def test_a_metric_that_does_not_fit_as_a_whole_is_counted_piece_by_piece() -> None:
    """Derived presets take several counters."""
    papi = FakePapi([*CORE, "PAPI_L1_DCM", "PAPI_L1_DCA"], cost={"PAPI_L1_DCM": 2, "PAPI_L1_DCA": 2})
    assert hardware_sets(plan_of(papi, ["cpi", "l1d_miss_ratio"])) == [(*CORE, "PAPI_L1_DCM"), (*CORE, "PAPI_L1_DCA")]


def test_core_events_that_do_not_even_fit_together_are_counted_in_turn() -> None:
    presets = [*CORE, "PAPI_BR_MSP"]
    assert hardware_sets(plan_of(FakePapi(presets, counters=1), presets)) == [(name,) for name in presets]


def test_an_event_beside_which_core_events_have_no_room_is_counted_alone() -> None:
    presets = [*CORE, "PAPI_SP_OPS"]
    papi = FakePapi(presets, counters=4, cost={"PAPI_SP_OPS": 4})
    assert hardware_sets(plan_of(papi, presets)) == [CORE, ("PAPI_SP_OPS",)]


def reason_of(papi: FakePapi, name: str, kernel: bool | None = None) -> str:
    plan = plan_of(papi, [name], kernel)
    assert name not in plan.events and not any(name in names for names in plan.sets)
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
    collector.check_options({"events": ["cpi", "PAPI_TOT_CYC", "perf::TASK-CLOCK"]})
    with pytest.raises(UsageError):
        collector.check_options({"events": ["PAPI_TOT_CYCLES"]})
    with pytest.raises(UsageError):
        collector.start(PassContext("measure", MAIN, MAIN, Path(), {"events": ["PAPI_TOT_CYCLES"]}))


@pytest.mark.parametrize(("kernel", "refuses_domain"), [(True, True), (False, True), (False, False)])
def test_user_code_only_where_no_more_is_allowed(kernel: bool, refuses_domain: bool) -> None:
    """PAPI may refuse to count the kernel at once, or when the set is opened."""
    papi = FakePapi(["PAPI_TOT_CYC"], kernel=kernel, refuses_domain=refuses_domain)
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
    assert found.ok and fields(found.detail)["every_thread"] is False
    assert fields(found.detail)["software"] == SOFTWARE and fields(found.detail)["hardware"] == []
    cycles = fields(found.detail)["unavailable"]["PAPI_TOT_CYC"]
    assert cycles == {"reason": why_no_hardware().reason, "remedy": why_no_hardware().remedy}
    assert any(note.startswith("CPI, GHz") for note in texts(found.notes))
    assert any("main thread only" in note and "--counters perf" in note for note in texts(found.notes))
