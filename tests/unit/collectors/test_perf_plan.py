"""Which events are counted, against a made-up kernel that refuses, starves and ignores events."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.perf import permission, plan
from collectors.perf.collector import plan_detail, plan_notes
from hwprof.hardware import perf_event
from hwprof.hardware.catalogue import Event, catalogue
from hwprof.hardware.perf_event import Attributes
from tests.unit.hardware.recorded import plant

HARDWARE = ["cycles", "instructions", "cache-references", "cache-misses", "branches", "branch-misses"]
SOFTWARE = ["task-clock", "page-faults", "context-switches", "cpu-migrations"]


@dataclass
class Kernel:
    """perf_event_open as the tests want it: how many counters there are, what is refused, what stays 0."""

    counters: int = 6
    refused: dict[str, int] = field(default_factory=dict)
    dead: frozenset[str] = frozenset()
    kernel_allowed: bool = True
    everything_fails: int | None = None
    groups: dict[int, list[str]] = field(default_factory=dict)
    enabled_ns: int = 0
    opened: list[Attributes] = field(default_factory=list)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> Kernel:
        monkeypatch.setattr(perf_event, "open_event", self.open_event)
        monkeypatch.setattr(perf_event, "enable_group", lambda fd: None)
        monkeypatch.setattr(perf_event, "read_group", self.read_group)
        monkeypatch.setattr(perf_event, "busy_work", lambda: 0)
        monkeypatch.setattr(perf_event, "core_pmu_counts", lambda: self.counters > 0)
        monkeypatch.setattr(perf_event, "paranoid_level", lambda root=None: 1 if self.kernel_allowed else 2)
        return self

    def open_event(self, attributes: Attributes, tid: int = 0, group_fd: int = -1) -> int:
        if self.everything_fails:
            raise OSError(self.everything_fails, os.strerror(self.everything_fails))
        if not attributes.exclude_kernel and not self.kernel_allowed:
            raise OSError(errno.EACCES, "Permission denied")
        self.opened.append(attributes)
        event = next(e for e in catalogue().events if (e.type, e.config) == (attributes.type, attributes.config))
        if event.name in self.refused:
            raise OSError(self.refused[event.name], os.strerror(self.refused[event.name]))
        assert attributes.disabled == (group_fd < 0)  # members follow their leader
        fd = os.open(os.devnull, os.O_RDONLY)
        if group_fd < 0:
            self.groups[fd] = []
        self.groups[fd if group_fd < 0 else group_fd].append(event.name)
        return fd

    def read_group(self, fd: int, events: int) -> tuple[int, int, tuple[int, ...]]:
        names = self.groups[fd]
        assert len(names) == events
        fits = sum(name in HARDWARE for name in names) <= self.counters
        self.enabled_ns += 1_000_000
        # a group that does not fit shows a few microseconds, as the real kernel does
        running_ns = self.enabled_ns if fits else 4_000
        return self.enabled_ns, running_ns, tuple(int(fits and name not in self.dead) for name in names)


def made(kernel: bool | None = None, names: Sequence[str] | None = None) -> plan.Plan:
    return plan.make_plan(catalogue().select(names) if names else catalogue().defaults(), kernel=kernel)


def test_a_whole_pmu_gives_two_sets_with_the_software_events_in_both(monkeypatch: pytest.MonkeyPatch) -> None:
    Kernel().install(monkeypatch)
    found = made()
    assert [list(group.names) for group in found.sets] == [
        ["cycles", "instructions", "cache-references", "cache-misses", *SOFTWARE],
        ["cycles", "instructions", "branches", "branch-misses", *SOFTWARE],
    ]
    assert (found.dropped, found.notes, found.kernel) == ({}, [], True)


def test_refused_ignored_and_starved_events_are_dropped_with_their_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(refused={"cache-misses": errno.ENOENT, "branches": errno.EIO}, dead=frozenset({"instructions"}))
    kernel.install(monkeypatch)
    found = made()
    reasons = {name: why.reason for name, why in found.dropped.items()}
    assert reasons == {
        "cache-misses": "this machine's PMU does not offer cache-misses (ENOENT)",
        "branches": "the kernel refuses branches (Input/output error)",
        "instructions": "instructions opens but stays 0 where it must count: this processor does not implement it",
    }
    assert [group.names[:3] for group in found.sets] == [("cycles", "cache-references", "branch-misses")]


def test_an_event_that_may_well_be_zero_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    Kernel(dead=frozenset({"cache-misses", "page-faults"})).install(monkeypatch)
    assert made().dropped == {}


def test_too_few_counters_make_smaller_sets_and_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    Kernel(counters=2).install(monkeypatch)
    found = made()
    hardware = [[name for name in group.names if name in HARDWARE] for group in found.sets]
    assert hardware == [
        ["cycles", "instructions"],
        ["cache-references", "cache-misses"],
        ["cycles", "instructions"],
        ["branches", "branch-misses"],
    ]
    assert len(found.notes) == 2 and "nmi_watchdog" in found.notes[0]


def test_without_hardware_there_is_one_set_of_software_events(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Kernel(counters=0, refused=dict.fromkeys(HARDWARE, errno.ENOENT)).install(monkeypatch)
    found = made()
    assert [list(group.names) for group in found.sets] == [SOFTWARE]
    detail = plan_detail(found)
    assert (detail["hardware"], detail["software"]) == ([], SOFTWARE)
    assert set(detail["unavailable_events"]) == set(HARDWARE)
    assert len([note for note in plan_notes(found) if note.startswith("not counted")]) == 1  # one reason for all six


def test_a_pmu_that_never_has_a_free_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    Kernel(counters=0).install(monkeypatch)
    found = made()
    assert [list(group.names) for group in found.sets] == [SOFTWARE]
    assert all("never gets a hardware counter" in why.reason for why in found.dropped.values())


def test_user_only_drops_what_happens_in_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(kernel_allowed=False).install(monkeypatch)
    found = made()
    assert set(found.dropped) == {"context-switches", "cpu-migrations"}
    assert found.dropped["context-switches"].remedy == "sudo sysctl kernel.perf_event_paranoid=1"
    assert not found.kernel
    assert all(attributes.exclude_kernel for attributes in kernel.opened)
    assert any("user code only" in note and "sudo sysctl" in note for note in plan_notes(found))


@pytest.mark.parametrize(
    ("asked", "allowed", "counted"), [(None, True, True), (False, True, False), (True, False, False)]
)
def test_counting_the_kernel(monkeypatch: pytest.MonkeyPatch, asked: bool | None, allowed: bool, counted: bool) -> None:
    Kernel(kernel_allowed=allowed).install(monkeypatch)
    found = made(kernel=asked)
    assert found.kernel is counted
    cycles, clock = catalogue().select(["cycles", "task-clock"])
    assert found.attributes(cycles, leader=True).exclude_kernel is not counted
    assert found.attributes(clock, leader=False).exclude_kernel is not allowed


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_no_descriptor_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    Kernel(refused={"branches": errno.ENOENT}, counters=3).install(monkeypatch)
    before = open_descriptors()
    made()
    assert open_descriptors() == before


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOSYS])
def test_nothing_allowed_is_its_own_error(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    Kernel(everything_fails=code).install(monkeypatch)
    with pytest.raises(plan.NotAllowedError) as caught:
        made()
    assert caught.value.errno == code


def hardware_events() -> st.SearchStrategy[list[Event]]:
    hardware = [event for event in catalogue().events if event.kind == "hardware"]
    return st.lists(st.sampled_from(hardware), unique=True).map(lambda chosen: sorted(chosen, key=hardware.index))


@given(hardware_events(), st.integers(3, 6))
def test_packing_keeps_every_event_and_the_limit(events: list[Event], size: int) -> None:
    sets = plan.pack(events, size)
    assert {event.name for group in sets for event in group} == {event.name for event in events}
    assert all(0 < len(group) <= size for group in sets)
    core = {event.name for event in events if event.topic == "core"}
    assert all(core <= {event.name for event in group} for group in sets)
    rest = [event.name for group in sets for event in group if event.topic != "core"]
    assert len(rest) == len(set(rest))


def seccomp(root: Path) -> None:
    (root / ".dockerenv").touch()


def nothing(root: Path) -> None:
    del root


@pytest.mark.parametrize(
    ("code", "paranoid", "prepare", "reason", "remedy"),
    [
        (errno.EACCES, "3", nothing, "kernel.perf_event_paranoid is 3", "sudo sysctl kernel.perf_event_paranoid=1"),
        (errno.EPERM, "2", seccomp, "container's seccomp filter", "--cap-add PERFMON"),
        (errno.EPERM, "2", nothing, "Operation not permitted", "sudo sysctl kernel.perf_event_paranoid=1"),
        (errno.ENOSYS, None, nothing, "this kernel has no perf_event_open", "CONFIG_PERF_EVENTS"),
        (errno.EMFILE, "2", nothing, "no file descriptors left", "ulimit -n"),
    ],
)
def test_refusals_have_a_reason_and_a_remedy(
    tmp_path: Path, code: int, paranoid: str | None, prepare: Callable[[Path], None], reason: str, remedy: str
) -> None:
    prepare(tmp_path)
    if paranoid is not None:
        (tmp_path / "proc/sys/kernel").mkdir(parents=True)
        (tmp_path / "proc/sys/kernel/perf_event_paranoid").write_text(paranoid)
    why = permission.why_not_allowed(OSError(code, os.strerror(code)), tmp_path)
    assert reason in why.reason
    assert why.remedy is not None and remedy in why.remedy


def test_no_hardware_counters_has_a_reason(tmp_path: Path) -> None:
    assert "no driver for this processor's PMU" in permission.why_no_hardware(tmp_path).reason
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("processor : 0\nflags : fpu lm hypervisor\n")
    why = permission.why_no_hardware(tmp_path)
    assert "the hypervisor shows this virtual machine no PMU" in why.reason
    assert why.remedy is not None and "pmu=on" in why.remedy


def test_cores_of_two_kinds_are_noted(tmp_path: Path) -> None:
    why = permission.why_not_on_every_core(plant("intel-alder-lake", tmp_path / "hybrid"))
    assert why is not None and "performance cores only" in why.reason
    assert permission.why_not_on_every_core(plant("amd-zen4-firecracker", tmp_path / "uniform")) is None
    assert permission.why_not_on_every_core(plant("arm-neoverse-n1-qemu", tmp_path / "one")) is None
    for name in ("armv8_cortex_a55", "armv8_cortex_a76"):
        (tmp_path / "two/sys/bus/event_source/devices" / name).mkdir(parents=True)
    why = permission.why_not_on_every_core(tmp_path / "two")
    assert why is not None and "armv8_cortex_a55, armv8_cortex_a76" in why.reason
