"""RAPL through the kernel's powercap interface: a folder a zone, a file with microjoules that wrap."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hwprof.hardware import machine

FOLDER: Final = "sys/class/powercap"

GRANT_READING: Final = "sudo chmod -R a+r /sys/class/powercap/intel-rapl/"
LOAD_DRIVER: Final = "sudo modprobe intel_rapl_msr"


@dataclass
class Unwrapped:
    """A cumulative counter made of one that wraps: joules since the first value."""

    max_uj: int
    last_uj: int | None = None
    total_uj: int = 0

    def add(self, value_uj: int) -> float:
        """The joules since the first value, after another one less than a full turn later.

        The counter runs from 0 to ``max_uj`` inclusive. Where the kernel gives no range (0), a counter that goes back
        is taken to have started again at 0.
        """
        if self.last_uj is not None:
            step = value_uj - self.last_uj
            if step < 0:
                step = step + self.max_uj + 1 if self.max_uj >= self.last_uj else value_uj
            self.total_uj += step
        self.last_uj = value_uj
        return self.total_uj / 1e6


class Zone:
    """One energy counter of powercap, a ``Meter``."""

    def __init__(self, name: str, folder: Path) -> None:
        """``name``: unique, as package-0, package-0/core, package-0/dram, psys."""
        self.name = name
        self._folder = folder
        self._file: int | None = None
        self._counter = Unwrapped(0)

    def open(self) -> None:
        """The counter goes from 0 up to what a file beside it says, then starts again. Raises ``OSError``."""
        self._file = os.open(self._folder / "energy_uj", os.O_RDONLY | os.O_CLOEXEC)
        self._counter = Unwrapped(_number(self._folder / "max_energy_range_uj"))

    def joules(self) -> float:
        """Since the first reading. Raises ``OSError`` and ``ValueError``."""
        assert self._file is not None, "open comes first"
        return self._counter.add(int(os.pread(self._file, 64, 0)))

    def close(self) -> None:
        """Gives its file back."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def find_zones(root: Path = machine.ROOT) -> list[Zone]:
    """Every energy counter of the machine whose sysfs lies below ``root``: packages, what they contain, the platform.

    On Intel the same package may appear under ``intel-rapl`` and ``intel-rapl-mmio``: the second is the same silicon,
    so it is left out. Names that occur twice (two sockets' ``dram``) are distinguished by the zone that contains them.
    """
    folders = sorted(
        (folder for folder in (root / FOLDER).glob("*-rapl:*") if (folder / "energy_uj").exists()),
        key=lambda folder: [int(part) for part in folder.name.split(":")[1:]],
    )
    named = [(folder, _own_name(folder)) for folder in folders]
    by_folder = {folder.name: name for folder, name in named}
    full = []
    for folder, name in named:
        parent = by_folder.get(folder.name.rpartition(":")[0])
        full.append(f"{parent}/{name}" if parent else name)
    seen = Counter(full)
    return [
        Zone(name if seen[name] == 1 else f"{name} ({folder.name})", folder)
        for (folder, _), name in zip(named, full, strict=True)
    ]


def _own_name(folder: Path) -> str:
    try:
        return (folder / "name").read_text().strip()
    except OSError:
        return folder.name


def _number(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return 0
