"""The events that the cache model gives. Data: ``cache_events.toml``."""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from collectors.instrumented.cache_geometry import LEVELS, Geometry
from collectors.instrumented.cache_memory import COUNTS
from collectors.instrumented.events import COUNTED
from collectors.shared.symbols.domains import Domain
from hwprof.data_files import read_toml
from hwprof.run.manifest import EventInfo

PREFIX: Final = "cache-model."

PROVENANCE: Final = "simulated"


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    name: str
    count: str
    lines: bool = False
    level: str | None = None
    kernels: bool = True
    unit: str = "1"
    meaning: str


class _File(msgspec.Struct, forbid_unknown_fields=True):
    event: tuple[_Entry, ...]


class CacheEvent(msgspec.Struct, frozen=True):
    """One event of a model with these caches."""

    entry: _Entry
    geometry: Geometry

    @property
    def full_name(self) -> str:
        """As tables and manifest have it."""
        return PREFIX + self.entry.name

    @property
    def counted_domains(self) -> frozenset[Domain]:
        """Whose code counts: as with the instructions."""
        return COUNTED

    @property
    def busiest(self) -> bool:
        """No: sums over threads."""
        return False

    @property
    def of_kernels(self) -> bool:
        """Whether kernels have it too."""
        return self.entry.kernels

    def weights(self) -> npt.NDArray[np.int64]:
        """Shape (counts,): what one of each adds."""
        last = LEVELS[len(self.geometry.levels) - 1]
        weights = np.zeros(len(COUNTS), dtype=np.int64)
        count = f"{last}_misses" if self.entry.count == "last_misses" else self.entry.count
        weights[COUNTS.index(count)] = self.geometry.line_bytes if self.entry.lines else 1
        return weights

    def info(self) -> EventInfo:
        """As the manifest keeps it."""
        meaning = f"{self.entry.meaning}; simulated caches: {self.geometry}"
        return EventInfo(name=self.full_name, meaning=meaning, unit=self.entry.unit, kind="simulated")


def events(geometry: Geometry) -> tuple[CacheEvent, ...]:
    """All that a model with these caches reports, in the file's order."""
    modelled = {None, *LEVELS[: len(geometry.levels)]}
    entries = read_toml(__name__, "cache_events.toml", _File).event
    return tuple(CacheEvent(entry, geometry) for entry in entries if entry.level in modelled)
