"""Made-up servers whose DRAM traffic is counted: their sysfs trees, and a kernel that counts what it is told to."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from collectors.uncore.collector import UncoreCollector
from collectors.uncore.traffic import Reading
from hwprof.collector.contract import PassContext
from hwprof.hardware import perf_event
from hwprof.hardware.catalogue import Event, Microarchitecture, microarchitecture
from hwprof.hardware.perf_event import Attributes
from hwprof.run.schema import TABLES
from tests.support.reported import texts

INTEL_FORMATS = {"event": "config:0-7", "umask": "config:8-15"}
UMC_FORMATS = {"event": "config:0-7", "rdwrmask": "config:8-9"}
DF_FORMATS = {"event": "config:0-7,32-35,59-60", "umask": "config:8-15"}
FIRST_TYPE = 20


def plant_machine(root: Path, cpuinfo: str, sockets: dict[int, int], pmu: str = "cpu") -> Path:
    """What /proc and /sys say of a processor, its cores' PMU, and which socket each logical processor is on."""
    (root / "proc/sys/kernel").mkdir(parents=True)
    (root / "proc/cpuinfo").write_text(f"processor\t: 0\n{cpuinfo}\nflags\t\t: fpu lm\n")
    (root / "proc/sys/kernel/perf_event_paranoid").write_text("0\n")
    for cpu, socket in sockets.items():
        folder = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
        folder.mkdir(parents=True)
        (folder / "physical_package_id").write_text(f"{socket}\n")
    plant_pmu(root, pmu, {"event": "config:0-7"}, None)
    return root


def plant_pmu(root: Path, name: str, formats: dict[str, str], cpumask: str | None, **events: str) -> int:
    """A PMU's folder; its type."""
    devices = root / "sys/bus/event_source/devices"
    folder = devices / name
    kind = FIRST_TYPE + (len(list(devices.iterdir())) if devices.exists() else 0)
    for part, files in (("format", formats), ("events", events)):
        (folder / part).mkdir(parents=True)
        for file, text in files.items():
            (folder / part / file).write_text(text + "\n")
    (folder / "type").write_text(f"{kind}\n")
    if cpumask is not None:
        (folder / "cpumask").write_text(cpumask + "\n")
    return kind


def intel(model: int) -> str:
    return f"vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: {model}\nmodel name\t: Xeon"


def amd(family: int, model: int) -> str:
    return f"vendor_id\t: AuthenticAMD\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: EPYC"


def event(name: str, code: str, pmu: str = "uncore_imc") -> Event:
    return Event(name=name, meaning=name, code=code, pmu=pmu, scope="socket", unit="B", weight=64)


def known(name: str) -> Microarchitecture:
    """The catalogue's file of that name."""
    found = microarchitecture(name)
    assert found is not None
    return found


def planted_xeon(root: Path) -> Path:
    """Sapphire Rapids: two sockets with eight memory controllers each, and another unit of almost the same name."""
    plant_machine(root, intel(0x8F), {0: 0, 1: 0, 56: 1, 57: 1})
    for number in range(8):
        plant_pmu(root, f"uncore_imc_{number}", INTEL_FORMATS, "0,56")
    plant_pmu(root, "uncore_imc_free_running_0", INTEL_FORMATS, "0,56")
    return root


def planted_epyc(root: Path) -> Path:
    """Zen 4: one socket with twelve memory controllers."""
    plant_machine(root, amd(0x19, 0x11), {0: 0})
    for number in range(12):
        plant_pmu(root, f"amd_umc_{number}", UMC_FORMATS, "0")
    return root


@dataclass
class Kernel:
    """perf_event_open for processors: ``counts`` by (type, config, cpu), all times running unless ``share`` is less."""

    share: float = 1.0
    refused: Callable[[Attributes, int], int | None] = lambda attributes, cpu: None
    counts: dict[tuple[int, int, int], int] = field(default_factory=dict)
    groups: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    enabled: list[int] = field(default_factory=list)
    reads: int = 0

    def install(self, monkeypatch: pytest.MonkeyPatch) -> Kernel:
        monkeypatch.setattr(perf_event, "open_event", self.open_event)
        monkeypatch.setattr(perf_event, "enable_group", self.enabled.append)
        monkeypatch.setattr(perf_event, "read_group", self.read_group)
        return self

    def open_event(self, attributes: Attributes, tid: int = 0, group_fd: int = -1, cpu: int = -1) -> int:
        assert tid == -1 and cpu >= 0  # a whole processor's
        assert not attributes.exclude_kernel  # the drivers refuse events of sockets that exclude anything
        assert attributes.disabled == (group_fd < 0)  # members follow their leader
        if code := self.refused(attributes, cpu):
            raise OSError(code, os.strerror(code))
        fd = os.open(os.devnull, os.O_RDONLY)
        if group_fd < 0:
            self.groups[fd] = []  # of a descriptor that was closed and is given out again as well
        self.groups[fd if group_fd < 0 else group_fd].append((attributes.type, attributes.config, cpu))
        return fd

    def read_group(self, fd: int, events: int) -> Reading:
        assert fd in self.enabled and events == len(self.groups[fd])
        self.reads += 1
        time_ns = self.reads * 1_000_000
        return time_ns, int(time_ns * self.share), tuple(self.counts.get(key, 1000) for key in self.groups[fd])

    def count(self, config: int, cpu: int, lines: int) -> None:
        """Every controller whose counters are open there counts so many lines more."""
        for keys in self.groups.values():
            for key in keys:
                if key[1:] == (config, cpu):
                    self.counts[key] = self.counts.get(key, 1000) + lines


def run(root: Path, during: Callable[[], None]) -> tuple[dict[str, float], list[str]]:
    """The last value of every series of a run, and its notes."""
    collector = UncoreCollector(root)
    assert collector.availability().ok
    collector.start(PassContext("measure", 1, 1, root, {}))
    during()
    collected = collector.stop()
    series = collected.tables["series"]
    assert series.schema == TABLES["series"]
    assert set(series["unit"]) <= {"B"}
    first = series.group_by("name").first()
    assert set(first["value"]) <= {0.0}
    last = dict(series.group_by("name").last().select("name", "value").iter_rows())
    return last, texts(collected.notes)


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208
