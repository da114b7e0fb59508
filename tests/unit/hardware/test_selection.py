"""What becomes of the names that a user asks for, on recorded and composed machines."""

from __future__ import annotations

import difflib
from pathlib import Path

import msgspec
import pytest

from hwprof.errors import UsageError
from hwprof.hardware import catalogue
from hwprof.hardware.catalogue import microarchitecture
from hwprof.hardware.cores import machine_of
from hwprof.hardware.machine import read_machine
from hwprof.hardware.metrics import vocabulary
from hwprof.hardware.pmu import Code, EncodingError
from hwprof.hardware.resolution import ON_PAPER
from hwprof.hardware.selection import select
from tests.support.asking import N2, SPR, ZEN2, ZEN4, Asking, hardware

NO_PMU = "amd-zen4-firecracker"
SOFTWARE = ["task-clock", "page-faults", "context-switches", "cpu-migrations"]


@pytest.fixture
def zen4(tmp_path: Path) -> Asking:
    return Asking(ZEN4, tmp_path)


@pytest.fixture
def spr(tmp_path: Path) -> Asking:
    return Asking(SPR, tmp_path)


def test_software_events_are_always_counted_along(zen4: Asking) -> None:
    assert [event.name for event in zen4("cycles").events] == ["cycles", *SOFTWARE]
    assert [event.name for event in zen4().events][-4:] == SOFTWARE


def test_an_alias_and_a_name_are_one_event(zen4: Asking) -> None:
    assert list(hardware(zen4("cpu-cycles", "cycles", "CYCLES"))) == ["cycles"]


def test_a_group_is_its_metrics_and_their_events(zen4: Asking) -> None:
    found = zen4("branch")
    assert [metric.name for metric in found.metrics] == ["branch_mpki", "branch_miss_ratio"]
    assert list(hardware(found)) == ["branch-misses", "instructions", "branches"]
    assert found.bundles == (("branch-misses", "instructions"), ("branch-misses", "branches"))


def test_all_is_every_metric_of_the_processor(zen4: Asking) -> None:
    known = microarchitecture(ZEN4)
    assert known is not None
    asked = {metric.name for metric in zen4("all").metrics}
    assert asked >= set(known.catalogue.recipes)
    assert {metric.name for metric in zen4("default").metrics} == {metric.name for metric in zen4().metrics} < asked


def test_formulas_are_those_of_the_file(zen4: Asking) -> None:
    (metric,) = zen4("counted_gflops").metrics
    assert metric.formula == '"fp_ret_sse_avx_ops.all" / "counted-time"'
    (metric,) = zen4("branch_mpki").metrics
    assert metric.formula == '1000 * "branch-misses" / "instructions"'


def test_codes_are_the_drivers(spr: Asking) -> None:
    found = hardware(spr("cycles", "fp_arith_inst_retired.512b_packed_single"))
    assert found["cycles"].code == Code(0, 0)
    assert found["cycles"].pmu == "cpu"
    assert found["cycles"].fixed
    flops = found["fp_arith_inst_retired.512b_packed_single"]
    assert (flops.code, flops.fixed, flops.event.weight) == (Code(4, 0x80C7), False, 16)


def test_a_leader_comes_before_the_events_that_it_leads(spr: Asking) -> None:
    found = spr("topdown-retiring")
    assert list(hardware(found)) == ["slots", "topdown-retiring"]
    assert found.bundles == (("slots", "topdown-retiring"),)
    assert all(event.fixed for event in hardware(found).values())


# --- raw syntax


@pytest.mark.parametrize(
    ("item", "name", "code", "excludes"),
    [
        ("r20c7", "r20c7", Code(4, 0x20C7), (False, False)),
        ("r20c7:u", "r20c7:u", Code(4, 0x20C7), (False, True)),
        ("cpu/r20c7/k", "cpu/r20c7/k", Code(4, 0x20C7), (True, False)),
        ("cpu/event=0xc7,umask=0x20/", "cpu/event=0xc7,umask=0x20/", Code(4, 0x20C7), (False, False)),
        ("cpu/event=0xc7,umask=0x20,name=fp256/u", "fp256", Code(4, 0x20C7), (False, True)),
        ("cpu/mem-loads/", "cpu/mem-loads/", Code(4, 0x1CD, 3), (False, False)),
        ("cpu/cycles/u", "cpu/cycles/u", Code(0, 0), (False, True)),
        ("cycles:u", "cycles:u", Code(0, 0), (False, True)),
        ("msr/tsc/", "msr/tsc/", Code(9, 0), (False, False)),
    ],
)
def test_raw_syntax_counts_what_perf_would(
    spr: Asking, item: str, name: str, code: Code, excludes: tuple[bool, bool]
) -> None:
    (event,) = hardware(spr(item)).values()
    assert (event.name, event.code) == (name, code)
    assert (event.exclude_user, event.exclude_kernel) == excludes


def test_a_raw_event_that_the_catalogue_knows_is_described_by_it(spr: Asking, tmp_path: Path) -> None:
    (event,) = hardware(spr("r20c7")).values()
    assert event.event.name == "fp_arith_inst_retired.256b_packed_single"
    assert "256" in event.meaning
    zen = Asking(ZEN4, tmp_path / "zen")
    (flops,) = hardware(zen("r1003")).values()
    assert flops.event.counters == 2
    (unknown,) = hardware(zen("cpu/event=0x03,umask=0x07/")).values()  # no such event in the file, but its counters
    assert unknown.event.counters == 2
    assert "as given" in unknown.meaning


def test_one_name_is_one_event(spr: Asking) -> None:
    with pytest.raises(UsageError, match=r"two events are called 'x'.*name="):
        spr("cpu/event=0xc7,umask=0x20,name=x/", "cpu/event=0xc7,umask=0x40,name=x/")
    assert list(hardware(spr("r20c7", "r20c7"))) == ["r20c7"]


# --- what cannot be had


@pytest.mark.parametrize("name", ["cylces", "l2_mkpi", "flopps", "cpi:u"])
def test_an_unknown_name_is_refused_with_near_ones(zen4: Asking, name: str) -> None:
    with pytest.raises(UsageError, match=rf"'{name}' on AMD Zen 4.*Try: .*hwprof events") as refusal:
        zen4(name)
    suggested = str(refusal.value).partition("Try: ")[2].partition(";")[0].split(", ")
    assert difflib.get_close_matches(name, suggested, cutoff=0.5)


def test_another_processors_event_is_called_that(zen4: Asking) -> None:
    with pytest.raises(UsageError, match=r"AMD Zen 4 has no event.*Sapphire Rapids"):
        zen4("exe.amx_busy")


def test_papis_names_are_papis(zen4: Asking) -> None:
    with pytest.raises(UsageError, match="--counters papi"):
        zen4("PAPI_TOT_CYC")


def test_terms_that_the_driver_lacks_are_refused(zen4: Asking) -> None:
    with pytest.raises(EncodingError, match="no term 'offcore_rsp'"):
        zen4("cpu/event=0xb7,offcore_rsp=1/")


def test_a_metric_without_events_is_dropped_with_the_processors_name(tmp_path: Path) -> None:
    found = Asking(ZEN2, tmp_path)("topdown_retiring", "ipc")
    assert [metric.name for metric in found.metrics] == ["ipc"]
    assert "AMD Zen 2" in found.dropped["topdown_retiring"].reason


def test_groups_only_miss_what_no_metric_of_theirs_tells(tmp_path: Path) -> None:
    """Zen 2 has no top-down events at all, which a user should hear; that Intel has no SMT slots is nobody's loss."""
    assert "topdown_retiring" in Asking(ZEN2, tmp_path / "zen2")().dropped
    spr = Asking(SPR, tmp_path / "spr")
    assert "topdown_smt" not in spr().dropped
    assert "topdown_smt" in spr("topdown_smt").dropped


def test_core_metrics_are_missed_in_any_case(tmp_path: Path) -> None:
    core = {metric.name for metric in vocabulary() if metric.core}
    for number, tree in enumerate((ZEN2, ZEN4, SPR, N2)):
        found = Asking(tree, tmp_path / str(number))()
        assert core <= {metric.name for metric in found.metrics} | set(found.dropped), tree


def test_without_a_pmu_events_are_dropped_and_formulas_kept(tmp_path: Path) -> None:
    found = Asking(NO_PMU, tmp_path)("l2_mpki", "ipc", "r20c7")
    assert [metric.name for metric in found.metrics] == ["l2_mpki", "ipc"]
    assert set(found.dropped) == {"l2_cache_req_stat.ic_dc_miss_in_l2", "r20c7"}
    assert "no PMU called cpu" in found.dropped["r20c7"].reason
    assert list(hardware(found)) == ["instructions", "cycles"]  # the kernel is asked for these without a PMU's terms
    assert found.bundles == (("instructions", "cycles"),)


def test_on_paper_everything_of_the_file_is_there(tmp_path: Path) -> None:
    asking = Asking(NO_PMU, tmp_path)
    found = select(["l2_mpki", "uncore"], asking.machine, asking.root, on_paper=True)
    assert hardware(found)["l2_cache_req_stat.ic_dc_miss_in_l2"].code == ON_PAPER
    assert {event.pmu for event in found.uncore} == {"amd_umc"}
    assert found.dropped == {}


def test_another_processor_can_be_looked_at(tmp_path: Path) -> None:
    known = microarchitecture("arm-neoverse-v2")
    assert known is not None
    found = select(["all"], machine_of(known), tmp_path, on_paper=True)
    assert {metric.name for metric in found.metrics} >= set(known.catalogue.recipes)
    assert {event.pmu for event in hardware(found).values()} == {known.processor.pmu}


def test_terms_for_another_processor_need_its_sysfs(tmp_path: Path) -> None:
    known = microarchitecture(SPR)
    assert known is not None
    found = select(["r20c7", "cpu/event=0xc7/", "msr/tsc/"], machine_of(known), tmp_path, (), on_paper=True)
    assert {why.reason for why in found.dropped.values()} == {
        "perf's terms need the PMU's description in sysfs, and there is none"
    }


def test_perfs_names_of_cache_events_are_the_kernels(spr: Asking) -> None:
    (event,) = hardware(spr("L1-dcache-load-misses")).values()
    assert event.code == Code(3, 0x10000)


def test_an_unknown_processor_has_the_kernels_events(tmp_path: Path) -> None:
    machine = read_machine(tmp_path, "riscv64", has_core_pmu=True)
    found = select(None, machine, tmp_path)
    assert {metric.name for metric in found.metrics} >= {"cpi", "cache_mpki", "branch_mpki"}
    assert "does not describe" in found.dropped["counted_gflops"].reason
    assert "README" in (found.dropped["counted_gflops"].remedy or "")


# --- outside of cores


def test_events_of_sockets_are_counted_on_every_instance_and_on_no_thread(spr: Asking) -> None:
    found = spr("uncore_dram_read_gbytes")
    assert hardware(found) == {}
    assert found.bundles == ()
    assert len({event.name for event in found.uncore}) == 1
    assert [event.pmu for event in found.uncore] == ["uncore_imc_0", "uncore_imc_1"]
    assert [event.code.type for event in found.uncore] == [20, 21]


def test_a_driver_that_is_not_loaded_is_named(tmp_path: Path) -> None:
    asking = Asking(ZEN4, tmp_path)
    for number in (0, 1):
        (asking.root / f"sys/bus/event_source/devices/amd_umc_{number}").rename(asking.root / f"gone{number}")
    found = asking("uncore")
    assert found.uncore == ()
    assert {why.remedy for why in found.dropped.values()} == {
        "sudo modprobe amd_uncore; virtual machines are rarely shown one"
    }


def test_any_pmu_of_sysfs_can_be_asked_for(spr: Asking) -> None:
    (energy,) = spr("power/energy-pkg/").uncore
    assert (energy.pmu, energy.code) == ("power", Code(10, 2))
    assert "Joules" in energy.meaning
    with pytest.raises(EncodingError, match="no term 'energy-gpu'"):
        spr("power/energy-gpu/")
    why = spr("nonsense/event=1/").dropped["nonsense/event=1/"]
    assert "no PMU called nonsense" in why.reason and "one of breakpoint, cpu, " in (why.remedy or "")


# --- hardware threads


def test_counts_of_whole_cores_are_called_that_where_threads_share_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = microarchitecture(ZEN4)
    assert known is not None
    first, *others = known.catalogue.events
    of_the_core = (msgspec.structs.replace(first, scope="core"), *others)
    changed = msgspec.structs.replace(known.catalogue, event=of_the_core)
    monkeypatch.setattr(catalogue, "catalogue", lambda _: changed)
    asking = Asking(ZEN4, tmp_path)
    of_a_thread = next(event for event in others if event.scope == "thread" and event.kind == "hardware")
    found = asking(first.name, of_a_thread.name)
    assert "both of its hardware threads" in hardware(found)[first.name].meaning
    assert "hardware threads" not in hardware(found)[of_a_thread.name].meaning
    assert first.name in found.notes[0]
    asking.machine = msgspec.structs.replace(asking.machine, physical_cores=asking.machine.logical_processors)
    without_smt = asking(first.name)
    assert "hardware threads" not in hardware(without_smt)[first.name].meaning
    assert without_smt.notes == ()
