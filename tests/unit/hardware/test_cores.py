"""Which file of the catalogue a core is found to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwprof.hardware.cores import DEVICES, Identity, core_kinds, identify
from hwprof.hardware.machine import CpuInfo, read_machine


def arm(implementer: int, part: int, variant: int, revision: int) -> CpuInfo:
    return CpuInfo(
        f"processor\t: 0\nCPU implementer\t: {implementer:#x}\nCPU architecture: 8\nCPU variant\t: {variant:#x}\n"
        f"CPU part\t: {part:#x}\nCPU revision\t: {revision}\n"
    )


@pytest.mark.parametrize(
    ("server", "cpu", "name", "file"),
    [
        ("Graviton2", arm(0x41, 0xD0C, 3, 1), "Neoverse-N1", "arm-neoverse-n1"),
        ("Ampere Altra", arm(0x41, 0xD0C, 3, 1), "Neoverse-N1", "arm-neoverse-n1"),
        ("Graviton3", arm(0x41, 0xD40, 1, 1), "Neoverse-V1", "arm-neoverse-v1"),
        ("Graviton4", arm(0x41, 0xD4F, 0, 1), "Neoverse-V2", "arm-neoverse-v2"),
        ("NVIDIA Grace", arm(0x41, 0xD4F, 0, 0), "Neoverse-V2", "arm-neoverse-v2"),
        ("Yitian 710", arm(0x41, 0xD49, 0, 0), "Neoverse-N2", "arm-neoverse-n2-r0p2"),
        ("N2 r0p2", arm(0x41, 0xD49, 0, 2), "Neoverse-N2", "arm-neoverse-n2-r0p2"),
        ("N2 r0p3", arm(0x41, 0xD49, 0, 3), "Neoverse-N2", "arm-neoverse-n2"),
        ("N2 r1p0", arm(0x41, 0xD49, 1, 0), "Neoverse-N2", "arm-neoverse-n2"),
        ("Azure Cobalt 100", arm(0x6D, 0xD49, 0, 0), "Azure-Cobalt-100", "arm-neoverse-n2"),
        ("somebody else's part of that number", arm(0x48, 0xD4F, 0, 0), "HiSilicon part 0xd4f", None),
        ("Ampere-1", arm(0xC0, 0xAC3, 0, 0), "Ampere-1", None),
    ],
)
def test_arm_cores_are_found_by_implementer_part_and_revision(
    server: str, cpu: CpuInfo, name: str, file: str | None
) -> None:
    assert cpu.processor == name
    for pmu in ("armv8_pmuv3_0", "armv8_neoverse_n2", None):  # as ACPI, a device tree, or nothing names it
        assert identify(cpu.identity, pmu) == file, server


def test_an_identification_register_says_the_same_as_cpuinfo() -> None:
    assert Identity.of_midr("ARM", 0x410FD493) == arm(0x41, 0xD49, 0, 3).identity
    assert Identity.of_midr("Microsoft", 0x6D0FD490) == arm(0x6D, 0xD49, 0, 0).identity


def test_an_arm_core_of_another_revision_than_the_first_is_found_by_its_own_register(tmp_path: Path) -> None:
    pmu = tmp_path / DEVICES / "armv8_pmuv3_0"
    pmu.mkdir(parents=True)
    (pmu / "cpus").write_text("0-1\n")
    for cpu in (0, 1):
        register = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/regs/identification/midr_el1"
        register.parent.mkdir(parents=True)
        register.write_text("0x00000000410fd493\n")
    (kind,) = core_kinds(tmp_path, arm(0x41, 0xD49, 0, 0).identity, [0, 1])
    assert kind.microarchitecture == "arm-neoverse-n2"


@pytest.mark.parametrize(
    ("processor", "model", "pmu", "file"),
    [
        ("Alder Lake", 0x97, "cpu_core", "intel-golden-cove"),
        ("Alder Lake", 0x97, "cpu_atom", "intel-gracemont"),
        ("Alder Lake to a kernel that does not know it", 0x97, "cpu", None),
        ("Alder Lake in a virtual machine", 0x97, None, "intel-golden-cove"),
        ("Alder Lake-N", 0xBE, "cpu", "intel-gracemont"),
        ("Alder Lake-N in a virtual machine", 0xBE, None, "intel-gracemont"),
        ("Sierra Forest", 0xAF, "cpu", "intel-sierra-forest"),
        ("Sierra Forest in a virtual machine", 0xAF, None, "intel-sierra-forest"),
        ("Meteor Lake", 0xAA, "cpu_atom", "intel-crestmont"),
        ("Arrow Lake-H", 0xC5, "cpu_core", "intel-lion-cove"),
        ("Arrow Lake-H", 0xC5, "cpu_atom", "intel-skymont"),
        ("Arrow Lake-H", 0xC5, "cpu_lowpower", "intel-crestmont"),
        ("Arrow Lake-S", 0xC6, "cpu_lowpower", None),
        ("Sapphire Rapids", 0x8F, "cpu", "intel-sapphire-rapids"),
        ("an unknown one", 0x01, "cpu", None),
    ],
)
def test_intel_cores_are_found_by_model_and_pmu(processor: str, model: int, pmu: str | None, file: str | None) -> None:
    assert identify(Identity("GenuineIntel", 6, model), pmu) == file, processor


def test_a_processor_of_another_vendor_is_not_taken_for_intels() -> None:
    assert identify(Identity("CentaurHauls", 6, 0x8F), "cpu") is None


def test_a_machine_of_arrow_lake_h_has_three_kinds_of_core(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(
        "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 197\n"
    )
    for pmu, cpus in (("cpu_core", "0-5"), ("cpu_atom", "6-13"), ("cpu_lowpower", "14-15")):
        folder = tmp_path / DEVICES / pmu
        folder.mkdir(parents=True)
        (folder / "cpus").write_text(f"{cpus}\n")
    cores = read_machine(tmp_path, "x86_64", has_core_pmu=True).cores
    found = [(core.pmu, core.microarchitecture, len(core.cpus)) for core in cores]
    assert found == [
        ("cpu_core", "intel-lion-cove", 6),
        ("cpu_atom", "intel-skymont", 8),
        ("cpu_lowpower", "intel-crestmont", 2),
    ]
