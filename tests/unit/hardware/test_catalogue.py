from __future__ import annotations

from pathlib import Path

import pytest

from hwprof.hardware.catalogue import catalogue, microarchitecture, microarchitectures
from hwprof.hardware.machine import read_machine
from hwprof.run.manifest import Machine
from tests.support.recorded_machines import plant

AMD, INTEL, ARM = "amd-zen4-firecracker", "intel-alder-lake", "arm-neoverse-n1-qemu"


def a_machine(root: Path, name: str) -> Machine:
    return read_machine(plant(name, root), "aarch64" if name == ARM else "x86_64", has_core_pmu=True)


@pytest.mark.parametrize(
    ("machine", "event", "part"),
    [
        (AMD, "cache-misses", "L2 cache misses (0x0964"),
        (AMD, "cache-references", "L2 cache (0xff60"),
        (INTEL, "cache-misses", "last-level cache misses"),
        (INTEL, "cache-references", "last-level cache"),
        (ARM, "cache-misses", "L1 data cache refills"),
        (ARM, "cache-references", "L1 data cache"),
        (ARM, "instructions", "INST_RETIRED, 0x08"),
        (AMD, "task-clock", "time that the thread spent on a processor"),
    ],
)
def test_a_name_means_what_the_processor_counts(tmp_path: Path, machine: str, event: str, part: str) -> None:
    assert part in catalogue().named()[event].info(a_machine(tmp_path, machine)).meaning


def test_an_unknown_processor_gets_the_kernels_meaning(tmp_path: Path) -> None:
    info = catalogue().named()["cache-misses"].info(read_machine(tmp_path, "riscv64", has_core_pmu=True))
    assert info.meaning == "cache misses, of the level that the kernel's driver chose for this processor"


def test_defaults_and_units() -> None:
    names = [event.name for event in catalogue().defaults()]
    assert names == ["task-clock", "page-faults", "context-switches", "cpu-migrations"]
    assert {event.name: event.unit for event in catalogue().events if event.unit != "1"} == {"task-clock": "ns"}


def test_names_and_configurations_are_unique() -> None:
    events = catalogue().events
    names = [name for event in events for name in (event.name, *event.aliases)]
    assert len(names) == len(set(names))
    assert len({(event.type, event.config) for event in events}) == len(events)


def test_codes_stand_in_the_meanings() -> None:
    """A code and the number in its text cannot drift apart."""
    mappings = [mapping for event in catalogue().events for mapping in event.on if mapping.code is not None]
    assert mappings
    for mapping in mappings:
        assert any(f"0x{mapping.code:0{width}x}" in mapping.meaning for width in (2, 4)), mapping


def test_aliases_name_the_same_event() -> None:
    named = catalogue().named()
    assert named["faults"] is named["page-faults"] and named["cpu-cycles"] is named["cycles"]


def test_a_processor_is_read_by_its_id_alone() -> None:
    for known in microarchitectures():
        assert microarchitecture(known.id) == known
    assert microarchitecture("kernel") is None  # a file that describes no processor
    assert microarchitecture("amd-zen9") is None
    assert microarchitecture(None) is None


@pytest.mark.parametrize(
    "name", ["../x", "../events/amd-zen4", "a\0b", "x" * 300, "", "AMD", "amd-zen4.toml", "/dev/zero"]
)
def test_an_id_is_no_path(name: str) -> None:
    """A run of another machine says which processor it had."""
    assert microarchitecture(name) is None
    with pytest.raises(KeyError):
        catalogue(name)
