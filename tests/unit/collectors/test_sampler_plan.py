"""What is sampled: frequencies, sampling events of every processor in the catalogue, and which of them works."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from collectors.sampler import plan
from collectors.sampler.code_mappings import NO_FILE, parse_maps
from collectors.sampler.collector import SamplerCollector
from collectors.sampler.plan import DEFAULT_FREQUENCY_HZ, Options, make_plan, too_frequent
from collectors.sampler.sampling_events import Opening, SamplingEvent, candidates, signed_sum
from collectors.shared.event_opening import NotAllowedError
from collectors.shared.event_opening import Opening as Counting
from hwprof.errors import HwprofError, UsageError
from hwprof.hardware import perf_sampling
from hwprof.hardware.catalogue import microarchitecture
from hwprof.hardware.cores import machine_of
from hwprof.hardware.selection import kinds_of_core
from tests.support.fake_perf import HYBRID, UNIFORM, machine
from tests.support.reported import texts


def leaders_of(name: str) -> list[SamplingEvent]:
    known = microarchitecture(name)
    assert known is not None
    (kind,) = kinds_of_core(machine_of(known), Path("/nowhere"), on_paper=True)
    return candidates(kind, 3)


@pytest.mark.parametrize(
    ("name", "misses"),
    [
        ("intel-sapphire-rapids", {"longest_lat_cache.miss": 1}),
        (
            "amd-zen4",
            {
                "ls_any_fills_from_sys.dram_io_all": 1,
                "ls_any_fills_from_sys.remote_cache": 1,
                "l2_pf_miss_l2_l3.l2_hwpf": 1,
            },
        ),
        ("amd-zen5", {"l2_fill_rsp_src.all": 1, "l2_fill_rsp_src.local_ccx": -1}),
        ("arm-neoverse-n1", {"ll_cache_miss_rd": 1}),
    ],
)
def test_the_group_is_cycles_instructions_and_what_the_processor_calls_llc_misses(
    name: str, misses: dict[str, int]
) -> None:
    best = leaders_of(name)[0]
    assert best.names() == ["cycles", "instructions", *misses]
    assert best.misses == tuple(misses.values())


def test_deltas_are_given_up_last_and_precision_before_them() -> None:
    tried = [(len(leader.members), leader.precise) for leader in leaders_of("intel-sapphire-rapids")]
    assert tried == [(members, precise) for members in (2, 1, 0) for precise in (3, 2, 1, 0)]
    assert not any(leader.misses for leader in leaders_of("intel-sapphire-rapids") if len(leader.members) < 2)


def test_a_sum_is_read_with_its_signs_and_nothing_else_is_taken_for_one() -> None:
    assert signed_sum('"a"') == {"a": 1}
    assert signed_sum('("a.b" + "c" - "d")') == {"a.b": 1, "c": 1, "d": -1}
    assert signed_sum('64 * ("a" + "b")') == {}
    assert signed_sum('"a" / "b"') == {}


# --- what is tried out


@pytest.fixture
def allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "find_opening", lambda *, kernel: Counting(kernel=bool(kernel), kernel_allowed=True))


def tried_out(monkeypatch: pytest.MonkeyPatch, works: Any) -> list[SamplingEvent]:
    tried: list[SamplingEvent] = []

    def trial(leader: SamplingEvent, opening: Opening) -> bool:
        tried.append(leader)
        return bool(works(leader))

    monkeypatch.setattr(plan, "brings_samples", trial)
    return tried


def precise(root: Path, most: int) -> Path:
    caps = root / "sys/bus/event_source/devices/cpu/caps"
    caps.mkdir(parents=True)
    (caps / "max_precise").write_text(f"{most}\n")
    return root


@pytest.mark.usefixtures("allowed")
def test_the_first_clock_that_works_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tried = tried_out(monkeypatch, lambda leader: leader.precise < 2)
    made = make_plan(Options(), machine(UNIFORM), precise(tmp_path, 3))
    assert [leader.precise for leader in tried] == [3, 2, 1]
    assert made.leaders == (tried[-1],)
    assert made.reading and made.event == "cycles"
    assert made.leaders[0].names() == ["cycles", "instructions"]
    assert [note for note in texts(made.notes) if "last-level cache" in note], "this processor is in no file"


@pytest.mark.usefixtures("allowed")
def test_a_pmu_that_promises_no_precision_is_not_asked_for_any(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = tried_out(monkeypatch, lambda leader: True)
    make_plan(Options(), machine(UNIFORM), Path("/nowhere"))
    assert [leader.precise for leader in tried] == [0]


@pytest.mark.usefixtures("allowed")
def test_each_kind_of_core_has_its_clock_and_none_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    tried_out(monkeypatch, lambda leader: True)
    made = make_plan(Options(), machine(HYBRID), Path("/nowhere"))
    assert [leader.pmu for leader in made.leaders] == ["cpu_core", "cpu_atom"]
    tried_out(monkeypatch, lambda leader: leader.pmu == "cpu_core")
    made = make_plan(Options(), machine(HYBRID), Path("/nowhere"))
    assert made.event == "cpu-clock", "half of the cores sampled would look like idle ones"


@pytest.mark.usefixtures("allowed")
def test_without_a_pmu_processor_time_is_sampled_and_the_note_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    tried_out(monkeypatch, lambda leader: False)
    made = make_plan(Options(), machine(UNIFORM))
    clock_and_switch_outs = 2
    assert (made.event, made.reading, made.descriptors) == ("cpu-clock", False, clock_and_switch_outs)
    (note,) = texts(made.notes)
    assert note.startswith("samples by cpu-clock")


# --- frequencies


def limits(root: Path, rate: int) -> Path:
    file = root / "proc/sys/kernel/perf_event_max_sample_rate"
    file.parent.mkdir(parents=True)
    file.write_text(f"{rate}\n")
    return root


def test_a_frequency_above_the_kernels_limit_is_refused_with_the_remedy(tmp_path: Path) -> None:
    root = limits(tmp_path, 500)
    assert too_frequent(500, root) is None
    why = too_frequent(501, root)
    assert why is not None
    assert why.reason == "kernel.perf_event_max_sample_rate is 500, below 501 Hz"
    assert why.remedy == "--frequency 500, or sudo sysctl kernel.perf_event_max_sample_rate=100000"


@pytest.mark.usefixtures("allowed")
def test_the_default_frequency_gives_way_to_the_limit_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried_out(monkeypatch, lambda leader: False)
    lowered = make_plan(Options(), machine(UNIFORM), limits(tmp_path, 500))
    assert lowered.opening.frequency_hz == 500
    assert any(
        note.startswith("sampled at 500 Hz: kernel.perf_event_max_sample_rate is 500") for note in texts(lowered.notes)
    )
    assert make_plan(Options(), machine(UNIFORM)).opening.frequency_hz == DEFAULT_FREQUENCY_HZ


def test_the_collector_refuses_a_frequency_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perf_sampling, "highest_frequency_hz", lambda root: 25_000)
    SamplerCollector().check_options({"frequency": 25_000})
    with pytest.raises(HwprofError, match="below 30000 Hz") as refusal:
        SamplerCollector().check_options({"frequency": 30_000})
    assert refusal.value.remedy is not None and refusal.value.remedy.startswith("--frequency 25000")
    with pytest.raises(UsageError):
        SamplerCollector().check_options({"frequency": 0})


# --- permission


def test_a_user_who_may_sample_nothing_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*, kernel: bool) -> Counting:
        raise NotAllowedError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(plan, "find_opening", refuse)
    monkeypatch.setattr("hwprof.hardware.perf_event.paranoid_level", lambda root: 3)
    available = SamplerCollector().availability()
    assert not available.ok
    assert available.reason == "kernel.perf_event_paranoid is 3: ordinary users may not count anything"
    assert available.remedy == "sudo sysctl kernel.perf_event_paranoid=1"


def test_a_user_who_may_not_see_the_kernel_samples_his_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "find_opening", lambda *, kernel: Counting(kernel=False, kernel_allowed=False))
    tried_out(monkeypatch, lambda leader: True)
    made = make_plan(Options(), machine(UNIFORM))
    assert made.opening.exclude_kernel
    assert any(
        note.startswith("samples: user code only, since kernel.perf_event_paranoid") for note in texts(made.notes)
    )


# --- what names addresses later


def test_executable_mappings_are_found_among_the_others() -> None:
    text = (
        "55e0a1000000-55e0a1001000 r--p 00000000 fd:01 11 /usr/bin/python3.11\n"
        "55e0a1001000-55e0a1003000 r-xp 00001000 fd:01 11 /usr/bin/python3.11\n"
        "7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n"
        "7f0000002000-7f0000003000 r-xp 00000000 fd:01 12 /tmp/a file (deleted)\n"
        "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n"
    )
    found = [(one.address, one.size_bytes, one.offset_bytes, one.file) for one in parse_maps(text, 5, 77)]
    assert found == [
        (0x55E0A1001000, 0x2000, 0x1000, "/usr/bin/python3.11"),
        (0x7F0000000000, 0x1000, 0, NO_FILE),
        (0x7F0000002000, 0x1000, 0, "/tmp/a file (deleted)"),
        (0xFFFFFFFFFF600000, 0x1000, 0, "[vsyscall]"),
    ]
    assert {(one.pid, one.time_ns) for one in parse_maps(text, 5, 77)} == {(5, 77)}
