"""The machine that is measured on, as /proc and /sys describe it. What they do not tell is None, never guessed.

Every function takes the root of the file system, so that recorded trees of other machines can be read as well.
"""

from __future__ import annotations

import os
import platform
import shlex
import time
from functools import cache
from pathlib import Path
from typing import Any, Final

from hwprof.data_files import read_toml
from hwprof.hardware.cgroup import cpu_limit
from hwprof.hardware.cores import DEVICES, Identity, core_kinds, cpu_list
from hwprof.hardware.perf_event import core_pmu_counts
from hwprof.hardware.topology import nodes, siblings
from hwprof.run.manifest import Cache, Machine

ROOT: Final = Path("/")
_CPU: Final = "sys/devices/system/cpu"
_MONOTONIC_COARSE: Final = 6
"""CLOCK_MONOTONIC_COARSE of linux/time.h, which Python has no name for: it stands still between two ticks."""

_TICKS_NS: Final = range(500_000, 50_000_001)
"""As long as a tick can be (CONFIG_HZ is 24 to 1200): some emulated kernels claim another resolution of that clock."""

_SIZE_UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def describe() -> Machine:
    """This machine. Opens one hardware counter for a moment, to see whether it counts."""
    return read_machine(
        ROOT,
        platform.machine(),
        has_core_pmu=core_pmu_counts(),
        tick_ns=kernel_tick_ns(),
        allowed=len(os.sched_getaffinity(0)),
    )


def read_machine(
    root: Path, architecture: str, *, has_core_pmu: bool, tick_ns: int | None = None, allowed: int | None = None
) -> Machine:
    """The machine whose /proc and /sys lie below ``root``; what no file there tells is given."""
    cpu = cpuinfo(root)
    logical = online_processors(root) or list(range(cpu.processors))
    return Machine(
        hostname=_text(root / "proc/sys/kernel/hostname") or "unknown",
        architecture=architecture,
        processor=cpu.processor,
        vendor=cpu.vendor,
        family=cpu.family,
        model=cpu.model,
        stepping=cpu.stepping,
        logical_processors=len(logical),
        physical_cores=_distinct(root, logical, "core_cpus_list", "thread_siblings_list"),
        sockets=_distinct(root, logical, "physical_package_id"),
        caches=caches(root),
        memory_bytes=memory_bytes(root),
        kernel=_text(root / "proc/sys/kernel/osrelease") or "unknown",
        system=system_name(root),
        hypervisor=hypervisor(root, cpu.flags),
        governor=_text(root / _CPU / "cpu0/cpufreq/scaling_governor"),
        pmus=pmus(root),
        has_core_pmu=has_core_pmu,
        cores=tuple(core_kinds(root, cpu.identity, logical)),
        tick_ns=tick_ns,
        cpu_limit=cpu_limit(root),
        siblings=siblings(root, logical),
        nodes=nodes(root),
        allowed_processors=allowed,
    )


def kernel_tick_ns() -> int | None:
    """From one tick of this kernel's clock to the next (1 s / CONFIG_HZ); None where it does not tell.

    Not SC_CLK_TCK, which is 100 on every kernel: that is the unit of what /proc says.
    """
    try:
        found = round(time.clock_getres(_MONOTONIC_COARSE) * 1e9)
    except OSError:
        return None
    return found if found in _TICKS_NS else None


class CpuInfo:
    """What /proc/cpuinfo says about its first processor (x86) or of its first core's identity registers (Arm)."""

    def __init__(self, text: str) -> None:
        records = [_fields(block) for block in text.strip().split("\n\n") if block.strip()]
        # Some Arm kernels put the identity into a block of its own at the end, some x86 ones nothing but blocks.
        merged: dict[str, str] = {}
        for record in records:
            for key, value in record.items():
                merged.setdefault(key, value)
        self.processors = max(1, sum("processor" in record for record in records))
        self.flags = frozenset((merged.get("flags") or merged.get("Features") or "").split())
        self._implementer: int | None = None
        self._revision: int | None = None
        if "CPU implementer" in merged:
            self._arm(merged)
        else:
            self.vendor = merged.get("vendor_id") or merged.get("vendor") or "unknown"
            self.processor = merged.get("model name") or merged.get("cpu model") or merged.get("cpu") or "unknown"
            self.family = _integer(merged.get("cpu family"))
            self.model = _integer(merged.get("model"))
            self.stepping = _integer(merged.get("stepping"))

    def _arm(self, merged: dict[str, str]) -> None:
        implementer, part = merged["CPU implementer"], merged.get("CPU part", "")
        known = _arm_names().get(implementer.lower(), {})
        self.vendor = str(known.get("vendor", implementer))
        self.processor = merged.get("model name") or str(
            known.get("parts", {}).get(part.lower(), f"{self.vendor} part {part or 'unknown'}")
        )
        self.family = None
        self.model = _integer(part)
        self.stepping = _integer(merged.get("CPU revision"))
        self._implementer = _integer(implementer)
        variant = _integer(merged.get("CPU variant"))
        if variant is not None and self.stepping is not None:
            self._revision = variant << 4 | self.stepping

    @property
    def identity(self) -> Identity:
        """What the catalogue finds the processor by."""
        return Identity(self.vendor, self.family, self.model, self._implementer, self._revision)


def cpuinfo(root: Path = ROOT) -> CpuInfo:
    """/proc/cpuinfo."""
    return CpuInfo(_text(root / "proc/cpuinfo") or "")


def caches(root: Path = ROOT) -> tuple[Cache, ...]:
    """The caches that processor 0 sees, by level; one whose size the system does not tell is left out."""
    found = []
    for index in sorted((root / _CPU / "cpu0/cache").glob("index*")):
        size, level, kind = (_text(index / name) for name in ("size", "level", "type"))
        kinds = {"Data": "data", "Instruction": "instruction", "Unified": "unified"}
        if not size or not level or kind not in kinds:
            continue
        found.append(
            Cache(
                level=int(level),
                kind=kinds[kind],  # type: ignore[arg-type]
                size_bytes=_size(size),
                ways=_integer(_text(index / "ways_of_associativity")) or None,
                line_bytes=_integer(_text(index / "coherency_line_size")) or None,
                shared_by=len(cpu_list(_text(index / "shared_cpu_list") or "0")),
            )
        )
    return tuple(sorted(found, key=lambda cache: (cache.level, cache.kind)))


def memory_bytes(root: Path = ROOT) -> int:
    """MemTotal; 0 where /proc/meminfo cannot be read."""
    return _size_bytes(root / "proc/meminfo", "MemTotal")


def available_bytes(root: Path = ROOT) -> int:
    """What programs can get without anything being swapped out (MemAvailable); 0 where the kernel does not say."""
    return _size_bytes(root / "proc/meminfo", "MemAvailable")


def process_bytes(pid: int, wanted: str, root: Path = ROOT) -> int:
    """A size in /proc/PID/status: ``VmRSS``, ``VmHWM``; 0 where the kernel does not say."""
    return _size_bytes(root / "proc" / str(pid) / "status", wanted)


def _size_bytes(file: Path, wanted: str) -> int:
    """Of a line like ``VmRSS:  1024 kB``."""
    for line in (_text(file) or "").splitlines():
        name, _, rest = line.partition(":")
        if name == wanted:
            return int(rest.split()[0]) * 1024
    return 0


def stolen_ns(root: Path = ROOT) -> int | None:
    """How long the hypervisor has run something else on processors that this system wanted, since boot and over all
    of them (the ``steal`` field of /proc/stat, in ticks of usually 10 ms); None where the kernel does not say."""
    fields = (_text(root / "proc/stat") or "").partition("\n")[0].split()
    if len(fields) < 9 or fields[0] != "cpu":
        return None
    return int(fields[8]) * (1_000_000_000 // os.sysconf("SC_CLK_TCK"))


def system_name(root: Path = ROOT) -> str:
    """PRETTY_NAME of os-release."""
    for place in ("etc/os-release", "usr/lib/os-release"):
        for line in (_text(root / place) or "").splitlines():
            name, _, value = line.partition("=")
            if name == "PRETTY_NAME":
                return " ".join(shlex.split(value))
    return "unknown"


def hypervisor(root: Path = ROOT, flags: frozenset[str] | None = None) -> str | None:
    """The hypervisor's name, ``"unknown"`` where there is one that does not name itself, None on bare metal.

    On x86 the processor's ``hypervisor`` flag decides; Arm has no such flag, so firmware and device tree do.
    """
    if flags is None:
        flags = cpuinfo(root).flags
    table = _table("hypervisors.toml")
    named = None
    clues = {
        "hypervisor_type": _text(root / "sys/hypervisor/type"),
        "device_tree": _first(
            _text(root / "proc/device-tree/hypervisor/compatible"), _text(root / "proc/device-tree/compatible")
        ),
        "dmi": " ".join(
            filter(None, (_text(root / "sys/class/dmi/id" / name) for name in ("sys_vendor", "product_name")))
        ),
        "clocksource": _text(root / "sys/devices/system/clocksource/clocksource0/available_clocksource"),
    }
    for clue, text in clues.items():
        named = named or next((name for part, name in table[clue].items() if text and part in text), None)
    x86 = "lm" in flags or "fpu" in flags
    if x86:
        return (named or "unknown") if "hypervisor" in flags else None
    return named


def pmus(root: Path = ROOT) -> tuple[str, ...]:
    """The names of the kernel's event sources."""
    folder = root / DEVICES
    return tuple(sorted(entry.name for entry in folder.iterdir())) if folder.is_dir() else ()


def online_processors(root: Path = ROOT) -> list[int]:
    """The logical processors that are on line; none where the kernel does not tell."""
    return cpu_list(_text(root / _CPU / "online") or "")


def package_of(cpu: int, root: Path = ROOT) -> int | None:
    """The number of the package (socket) that a logical processor is part of."""
    return _integer(_text(root / _CPU / f"cpu{cpu}/topology/physical_package_id"))


def _distinct(root: Path, processors: list[int], *names: str) -> int | None:
    """How many different values the topology files of the processors have; the first name that exists counts."""
    for name in names:
        values = [_text(root / _CPU / f"cpu{number}/topology/{name}") for number in processors]
        if values and all(value is not None and value != "-1" for value in values):
            return len(set(values))
    return None


def _fields(block: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in block.splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, _, value in pairs}


def _size(text: str) -> int:
    unit = _SIZE_UNITS.get(text[-1])
    return int(text[:-1]) * unit if unit else int(text)


def _integer(text: str | None) -> int | None:
    try:
        return int(text, 0) if text else None
    except ValueError:
        return None


def _first(*values: str | None) -> str | None:
    return next((value for value in values if value), None)


def _text(path: Path) -> str | None:
    """The file's text without the trailing newline or device tree's null bytes; None where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").replace("\0", " ").strip()
    except OSError:
        return None


@cache
def _table(name: str) -> dict[str, Any]:
    return read_toml(__name__, f"names/{name}", dict[str, Any])


def _arm_names() -> dict[str, Any]:
    return _table("arm.toml")
