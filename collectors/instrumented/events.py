"""The events that instrumentation gives: sums of facts over the code of some domains. Data: ``events.toml``."""

from __future__ import annotations

from functools import cache
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from collectors.instrumented.facts import Fact
from collectors.shared.symbols.domains import Domain
from hwprof.data_files import read_toml
from hwprof.run.manifest import EventInfo

PREFIX: Final = "instrumented."
"""No hardware event's name begins so: what is counted here is not what a PMU counts under the same word."""

PROVENANCE: Final = "instrumented"

COUNTED: Final = frozenset(Domain) - {Domain.OPENMP, Domain.TBB, Domain.OWN, Domain.KERNEL}
"""Whose code makes up an event that names no domains."""


class Event(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One entry of the file."""

    name: str
    facts: tuple[str, ...]
    domains: tuple[Domain, ...] = ()
    busiest: bool = False  # between two edges, of the thread that has the most, instead of the sum over threads
    by_kernel: bool = False
    unit: str = "1"
    precision: str | None = None
    width: int | None = None  # of the vectors, in bits; 0: scalar
    meaning: str
    caveat: str | None = None

    @property
    def full_name(self) -> str:
        """As tables and manifest have it."""
        return PREFIX + self.name

    @property
    def counted_domains(self) -> frozenset[Domain]:
        """Whose code counts."""
        return frozenset(self.domains) or COUNTED

    @property
    def of_kernels(self) -> bool:
        """Whether it is reported of kernels too."""
        return self.by_kernel

    def weights(self) -> npt.NDArray[np.int64]:
        """Shape (facts,): 1 for each fact that is summed."""
        weights = np.zeros(len(Fact), dtype=np.int64)
        weights[[Fact[name.upper()] for name in self.facts]] = 1
        return weights

    def info(self) -> EventInfo:
        """As the manifest keeps it."""
        return EventInfo(name=self.full_name, meaning=self.meaning, unit=self.unit, kind="instrumented")


class _File(msgspec.Struct, forbid_unknown_fields=True):
    event: tuple[Event, ...]


@cache
def events() -> tuple[Event, ...]:
    """All, in the file's order."""
    return read_toml(__name__, "events.toml", _File).event
