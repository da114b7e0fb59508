"""Which cores this machine has, by kind: their PMU and the event catalogue's file for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

from hwprof.hardware.catalogue import Match, Microarchitecture, microarchitectures
from hwprof.run.manifest import CoreKind, Machine

DEVICES: Final = "sys/bus/event_source/devices"
_CPU: Final = "sys/devices/system/cpu"
_ARM_PMUS: Final = ("armv8_", "armv9_")

EFFICIENT: Final = ("cpu_atom", "cpu_lowpower")
"""The PMUs of hybrid processors' efficiency cores."""


@dataclass(frozen=True)
class Identity:
    """What a core says that it is. x86: vendor, family and model; Arm: its identification register (MIDR)."""

    vendor: str
    family: int | None = None
    model: int | None = None  # Arm: the part number
    implementer: int | None = None  # Arm only
    revision: int | None = None  # Arm only: 0x03 is r0p3

    @classmethod
    def of_midr(cls, vendor: str, midr: int) -> Identity:
        """From the register, as sysfs shows it for each processor."""
        revision = (midr >> 20 & 0xF) << 4 | midr & 0xF
        return cls(vendor, model=midr >> 4 & 0xFFF, implementer=midr >> 24 & 0xFF, revision=revision)


def core_kinds(root: Path, identity: Identity, online: list[int]) -> list[CoreKind]:
    """The kinds of core, those that the kernel's general events count on first; one kind with no PMU where the kernel
    shows none.

    ``identity`` is /proc/cpuinfo's. On hybrids every kind is a PMU of its own with a list of its processors; Arm's have
    an identity of their own, too.
    """
    pmus = _core_pmus(root)
    if not pmus:
        return [CoreKind(None, identify(identity, None), tuple(online))]
    kinds = []
    for pmu in pmus:
        cpus = _cpus(root, pmu) or online
        own = _midr(root, cpus) if identity.implementer is not None else None
        core = identity if own is None else Identity.of_midr(identity.vendor, own)
        kinds.append(CoreKind(pmu, identify(core, pmu), tuple(cpus)))
    return kinds


def identify(identity: Identity, pmu: str | None) -> str | None:
    """The id of the catalogue's file for such a core; None: it knows no such processor.

    The files of a hybrid processor's kinds of core share family and model: ``pmu`` tells them apart (None: no PMU is
    shown, which is taken for a performance core where there is a choice). An Arm core's part says which it is, whatever
    firmware calls its PMU.
    """
    fitting = [
        (kind.id, match.pmu or kind.processor.pmu)
        for kind in microarchitectures()
        for match in kind.processor.matches
        if _fits(match, identity, kind.processor.vendor)
    ]
    if pmu is None:
        fitting.sort(key=lambda found: found[1] in EFFICIENT)
    elif identity.implementer is None:
        fitting = [found for found in fitting if found[1] == pmu]
    return fitting[0][0] if fitting else None


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


def _fits(match: Match, identity: Identity, vendor: str) -> bool:
    model, revision = identity.model, identity.revision
    if match.part is not None:
        return (model, identity.implementer) == (match.part, match.implementer) and (
            not match.revisions or revision is None or any(low <= revision <= high for low, high in match.revisions)
        )
    return (
        (identity.vendor, identity.family) == (vendor, match.family)
        and model is not None
        and any(low <= model <= high for low, high in match.models)
    )


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


def _midr(root: Path, cpus: list[int]) -> int | None:
    """The identification register that most of these Arm processors have; None where sysfs shows none."""
    found: Counter[int] = Counter()
    for cpu in cpus:
        try:
            found[int((root / _CPU / f"cpu{cpu}/regs/identification/midr_el1").read_text(), 16)] += 1
        except (OSError, ValueError):
            continue
    return found.most_common(1)[0][0] if found else None
