from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.hardware import cores, machine
from hwprof.run.manifest import Cache
from tests.support.recorded_machines import plant


def test_amd_virtual_machine(tmp_path: Path) -> None:
    found = machine.read_machine(plant("amd-zen4-firecracker", tmp_path), "x86_64", has_core_pmu=False)
    assert (found.vendor, found.processor) == ("AuthenticAMD", "AMD EPYC")
    assert (found.family, found.model, found.stepping) == (25, 17, 1)
    assert (found.logical_processors, found.physical_cores, found.sockets) == (2, 2, 1)
    assert found.caches == (
        Cache(level=1, kind="data", size_bytes=32 << 10, ways=8, line_bytes=64, shared_by=1),
        Cache(level=1, kind="instruction", size_bytes=32 << 10, ways=8, line_bytes=64, shared_by=1),
        Cache(level=2, kind="unified", size_bytes=1 << 20, ways=8, line_bytes=64, shared_by=1),
        Cache(level=3, kind="unified", size_bytes=32 << 20, ways=16, line_bytes=64, shared_by=2),
    )
    assert found.hypervisor == "KVM"
    assert found.governor is None
    assert found.pmus == ("breakpoint", "msr", "software", "tracepoint", "uprobe")
    assert found.kernel == "6.18.44-fc-v669"
    assert found.system == "Debian GNU/Linux 12 (bookworm)"
    assert not found.has_core_pmu


def test_intel_hybrid_on_bare_metal(tmp_path: Path) -> None:
    found = machine.read_machine(plant("intel-alder-lake", tmp_path), "x86_64", has_core_pmu=True)
    assert (found.vendor, found.family, found.model, found.stepping) == ("GenuineIntel", 6, 151, 2)
    assert (found.logical_processors, found.physical_cores, found.sockets) == (20, 12, 1)
    assert found.hypervisor is None
    assert found.governor == "powersave"
    assert {"cpu_core", "cpu_atom"} <= set(found.pmus)
    assert found.memory_bytes == 32593416 * 1024
    assert [cache.shared_by for cache in found.caches] == [2, 2, 2, 20]
    assert found.has_core_pmu


def test_arm_guest_tells_less_and_nothing_is_made_up(tmp_path: Path) -> None:
    found = machine.read_machine(plant("arm-neoverse-n1-qemu", tmp_path), "aarch64", has_core_pmu=True)
    assert (found.vendor, found.processor) == ("ARM", "Neoverse-N1")
    assert (found.family, found.model, found.stepping) == (None, 0xD0C, 1)
    assert found.caches == ()  # the files are there, without sizes
    assert found.hypervisor == "QEMU"
    assert found.physical_cores == 1


def test_an_empty_root_gives_unknowns(tmp_path: Path) -> None:
    found = machine.read_machine(tmp_path, "riscv64", has_core_pmu=False)
    assert (found.processor, found.vendor, found.kernel, found.system) == ("unknown",) * 4
    assert (found.family, found.physical_cores, found.sockets, found.hypervisor, found.governor) == (None,) * 5
    assert (found.caches, found.pmus, found.memory_bytes) == ((), (), 0)


def test_an_unknown_arm_part_is_named_by_its_number() -> None:
    found = machine.CpuInfo("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xfff\nCPU revision\t: 0\n")
    assert (found.vendor, found.processor) == ("ARM", "ARM part 0xfff")
    assert machine.CpuInfo("CPU implementer : 0x77\nCPU part : 0x001\n").vendor == "0x77"


@pytest.mark.parametrize(
    ("file", "text", "flags", "expected"),
    [
        ("sys/class/dmi/id/sys_vendor", "Amazon EC2", "fpu lm hypervisor", "Amazon EC2"),
        ("sys/class/dmi/id/sys_vendor", "Amazon EC2", "fpu lm", None),  # a metal instance
        ("sys/class/dmi/id/sys_vendor", "QEMU", "fpu lm hypervisor", "QEMU"),
        ("sys/hypervisor/type", "xen", "fpu lm hypervisor", "Xen"),
        ("proc/device-tree/hypervisor/compatible", "linux,kvm\0", "fp asimd", "KVM"),
        ("sys/class/dmi/id/sys_vendor", "HPE", "fp asimd", None),
        ("unrelated", "", "fpu lm hypervisor", "unknown"),
    ],
)
def test_hypervisors(tmp_path: Path, file: str, text: str, flags: str, expected: str | None) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
    assert machine.hypervisor(tmp_path, frozenset(flags.split())) == expected


@given(st.sets(st.integers(0, 300)))
def test_cpu_lists_read_back(numbers: set[int]) -> None:
    parts, ordered = [], sorted(numbers)
    while ordered:
        length = next((i for i in range(1, len(ordered)) if ordered[i] != ordered[0] + i), len(ordered))
        parts.append(str(ordered[0]) if length == 1 else f"{ordered[0]}-{ordered[length - 1]}")
        ordered = ordered[length:]
    assert cores.cpu_list(",".join(parts) + "\n") == sorted(numbers)


def test_this_machine_can_be_described() -> None:
    found = machine.describe()
    assert found.logical_processors >= 1
    assert found.memory_bytes > 0
    assert found.kernel != "unknown"


def test_stolen_time_is_in_nanoseconds_and_none_where_the_kernel_does_not_say(tmp_path: Path) -> None:
    assert machine.stolen_ns(tmp_path) is None
    (tmp_path / "proc").mkdir()
    stat = tmp_path / "proc/stat"
    stat.write_text("cpu  683880 417424 141472 948664 7218 0 1064 3544 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n")
    assert machine.stolen_ns(tmp_path) == 35_440_000_000
    stat.write_text("cpu  1 2 3 4\n")
    assert machine.stolen_ns(tmp_path) is None


@pytest.mark.parametrize(("resolution", "tick_ns"), [(0.001, 1_000_000), (0.01, 10_000_000), (1e-9, None), (1.0, None)])
def test_the_kernels_tick_is_the_coarse_clocks_resolution(
    monkeypatch: pytest.MonkeyPatch, resolution: float, tick_ns: int | None
) -> None:
    """A resolution that no kernel is built for is none."""
    monkeypatch.setattr(time, "clock_getres", lambda clock: resolution if clock == 6 else 0.1)
    assert machine.kernel_tick_ns() == tick_ns


def test_a_kernel_without_the_coarse_clock_tells_no_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(clock: int) -> float:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(time, "clock_getres", unknown)
    assert machine.kernel_tick_ns() is None
