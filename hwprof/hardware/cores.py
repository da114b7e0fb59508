"""Which cores this machine has, by kind: their PMU and the event catalogue's file for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from itertools import groupby
from pathlib import Path
from typing import Final

from hwprof.hardware.catalogue import Match, Microarchitecture, microarchitectures
from hwprof.run.manifest import CoreKind, Machine

DEVICES: Final = "sys/bus/event_source/devices"
_CPU: Final = "sys/devices/system/cpu"
_ARM_PMUS: Final = ("armv8_", "armv9_")


def core_kinds(root: Path, vendor: str, family: int | None, model: int | None, online: list[int]) -> list[CoreKind]:
    """The kinds of core, those that the kernel's general events count on first; one kind with no PMU where the kernel
    shows none.

    ``vendor``, ``family`` and ``model`` are /proc/cpuinfo's (of Arm: the part number as ``model``). On hybrids every
    kind is a PMU of its own with a list of its processors.
    """
    pmus = _core_pmus(root)
    if not pmus:
        return [CoreKind(None, identify(vendor, family, model, None), tuple(online))]
    kinds = []
    for pmu in pmus:
        cpus = _cpus(root, pmu) or online
        part = _part(root, cpus) if vendor == "ARM" else model
        kinds.append(CoreKind(pmu, identify(vendor, family, model if part is None else part, pmu), tuple(cpus)))
    return kinds


def identify(vendor: str, family: int | None, model: int | None, pmu: str | None) -> str | None:
    """The id of the catalogue's file for such a core; None: it knows no such processor.

    A hybrid processor's files share family and model: ``pmu`` tells them apart (None: performance cores).
    """
    fitting = [
        kind
        for kind in microarchitectures()
        if kind.processor.vendor == vendor and any(_fits(match, family, model) for match in kind.processor.matches)
    ]
    by_pmu = [kind for kind in fitting if pmu is not None and pmu.startswith(kind.processor.pmu)]
    exact = [kind for kind in by_pmu if kind.processor.pmu == pmu]
    chosen = (
        exact or by_pmu or ([] if pmu is not None else [kind for kind in fitting if "atom" not in kind.processor.pmu])
    )
    return chosen[0].id if chosen else None


def microarchitecture(name: str | None) -> Microarchitecture | None:
    """The catalogue's file of that id."""
    return next((kind for kind in microarchitectures() if kind.id == name), None)


def machine_of(kind: Microarchitecture) -> Machine:
    """A machine of which nothing is known but its kind of core: to look at a processor that is not at hand."""
    processor = kind.processor
    return Machine(
        hostname="unknown",
        architecture="aarch64" if processor.vendor == "ARM" else "x86_64",
        processor=processor.name,
        vendor=processor.vendor,
        family=next((match.family for match in processor.matches), None),
        model=None,
        stepping=None,
        logical_processors=1,
        physical_cores=None,
        sockets=None,
        caches=(),
        memory_bytes=0,
        kernel="unknown",
        system="unknown",
        hypervisor=None,
        governor=None,
        pmus=(processor.pmu,),
        has_core_pmu=False,
        cores=(CoreKind(processor.pmu, kind.id, ()),),
    )


def cpu_list(text: str) -> list[int]:
    """The kernel's list format, ``0-3,8`` -> 0, 1, 2, 3, 8."""
    numbers: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def cpu_ranges(cpus: Collection[int]) -> str:
    """``cpu_list`` backwards: 0, 1, 2, 3, 8 -> ``0-3,8``."""
    parts: list[str] = []
    for _, run in groupby(enumerate(sorted(cpus)), lambda pair: pair[1] - pair[0]):
        numbers = [number for _, number in run]
        parts.append(str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}")
    return ",".join(parts)


def _fits(match: Match, family: int | None, model: int | None) -> bool:
    if match.part is not None:
        return model == match.part
    return family == match.family and model is not None and any(low <= model <= high for low, high in match.models)


def _core_pmus(root: Path) -> list[str]:
    """The PMUs of cores: ``cpu``, or ``cpu_core`` and ``cpu_atom``, or Arm's."""
    folder = root / DEVICES
    names = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    x86: list[str] = [name for name in ("cpu_core", "cpu", "cpu_atom", "cpu_lowpower") if name in names]
    return x86 or [name for name in names if name.startswith(_ARM_PMUS)]


def _cpus(root: Path, pmu: str) -> list[int]:
    try:
        return cpu_list((root / DEVICES / pmu / "cpus").read_text())
    except OSError:
        return []


def _part(root: Path, cpus: list[int]) -> int | None:
    """The Arm part number that most of these processors have in their identification register."""
    parts: Counter[int] = Counter()
    for cpu in cpus:
        try:
            midr = int((root / _CPU / f"cpu{cpu}/regs/identification/midr_el1").read_text(), 16)
        except (OSError, ValueError):
            continue
        parts[midr >> 4 & 0xFFF] += 1
    return parts.most_common(1)[0][0] if parts else None
