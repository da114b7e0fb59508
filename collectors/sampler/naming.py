"""Names for sampled addresses: which function or JIT kernel each sample and each caller lies in.

This happens when the worker has ended, in the supervisor: reading symbols takes no time from what is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from collectors.sampler.records import Mapping
from collectors.shared.symbols.jit import Known
from collectors.shared.symbols.kallsyms import FIRST_ADDRESS, KernelSymbols, kernel_symbols
from collectors.shared.symbols.kernels import UNKNOWN, Kernel
from collectors.shared.symbols.mappings import Mapping as Mapped
from collectors.shared.symbols.process import vdso
from collectors.shared.symbols.ranges import Addresses, Numbers
from collectors.shared.symbols.resolver import Resolver
from collectors.shared.symbols.tables import kernels_table
from hwprof.collector.contract import Note, NoteKind, Unavailable

NAMEABLE: Final = ("user", "kernel")
"""Whose addresses are those of the process or of its operating system; a guest's mean something else."""

UNNAMED_SHARE: Final = 0.05
"""Of all samples, without a name, that is worth a note."""

UNNAMED_TOLD: Final = 3
"""Libraries that the note names at most."""


@dataclass(frozen=True)
class Named:
    """``samples`` and ``stacks`` with their column ``kernel``, and the rows of ``kernels`` (without ``pass``)."""

    samples: pl.DataFrame
    stacks: pl.DataFrame
    kernels: pl.DataFrame
    failure: str | None = None  # why nothing has a name

    def detail(self) -> dict[str, int]:
        """For the manifest: how many samples have a name, lie in a file without symbols for them, or lie nowhere known;
        and how many distinct callers lie nowhere known, as code without frame pointers has wrong ones."""
        found = self._samples_of_kernels()
        unknown = pl.col("library") == UNKNOWN.library
        callers = self.stacks.join(self.kernels.filter(unknown), on="kernel", how="semi")
        counts = found.select(
            named=pl.col("count").filter(pl.col("name").is_not_null()).sum(),
            unnamed=pl.col("count").filter(pl.col("name").is_null() & ~unknown).sum(),
            unknown=pl.col("count").filter(unknown).sum(),
        )
        return {**counts.row(0, named=True), "unknown_callers": callers.height, "callers": self.stacks.height}

    def notes(self) -> list[Note]:
        """Where names are missing."""
        if self.failure is not None:
            return [Note.not_available("names of samples", Unavailable(str(self.failure)))]
        without = self._samples_of_kernels().filter(pl.col("name").is_null())
        count = int(without["count"].sum())
        if not count or count <= UNNAMED_SHARE * self.samples.height:
            return []
        libraries = without.group_by("library").agg(pl.col("count").sum()).sort("count", "library", descending=True)
        where = ", ".join(libraries["library"].head(UNNAMED_TOLD))
        text = f"no symbols for code of {where}"
        return [Note(NoteKind.INCOMPLETE, text, f"{count / self.samples.height:.0%} of the samples have no name")]

    def _samples_of_kernels(self) -> pl.DataFrame:
        counts = self.samples.group_by("kernel").agg(count=pl.len().cast(pl.Int64))
        return counts.join(self.kernels, on="kernel")


def name(
    samples: pl.DataFrame,
    stacks: pl.DataFrame,
    mappings: Sequence[Mapping],
    known: Sequence[Known],
    kernel: Callable[[], KernelSymbols] = kernel_symbols,
) -> Named:
    """Names the rows of ``samples`` (by time) and ``stacks`` of one process.

    ``mappings``: its own, with their times: an address that belonged to one file after another is named by the one
    that was there at the sample's time. ``known``: its JIT kernels. Callers are named by the last file that was there,
    as one stack serves samples of all times, and by the instruction before the one that is returned to: a call may be
    the last one of its function.
    """
    numbering = _Numbering()
    resolver = partial(_resolver, known=known, vdso=vdso(), kernel=kernel)
    ordered = sorted(mappings, key=lambda mapping: mapping.time_ns)
    times, addresses = samples["time_ns"].to_numpy(), samples["address"].to_numpy()
    numbers: Numbers = np.empty(samples.height, dtype=np.int64)
    begin = 0
    for covered_ns, count in _epochs(ordered, int(times[0]) if len(times) else 0):
        end = int(np.searchsorted(times, covered_ns)) if covered_ns is not None else samples.height
        if end > begin:
            numbers[begin:end] = numbering.of(resolver(ordered[:count]), addresses[begin:end])
            begin = end
    numbering.mark_unknown(numbers, ~samples["domain"].is_in(NAMEABLE).to_numpy())
    calls = np.maximum(stacks["address"].to_numpy(), 1) - np.uint64(1)
    callers = numbering.of(resolver(ordered), calls)
    numbering.mark_unknown(callers, calls >= np.uint64(FIRST_ADDRESS))
    return Named(
        samples.with_columns(kernel=pl.Series(numbers, dtype=pl.Int32)),
        stacks.with_columns(kernel=pl.Series(callers, dtype=pl.Int32)),
        kernels_table(list(numbering.kernels)),
    )


def nameless(samples: pl.DataFrame, stacks: pl.DataFrame, error: Exception) -> Named:
    """What there is where naming has failed: all code is unknown, and the reason is reported."""
    unknown = pl.lit(0, dtype=pl.Int32).alias("kernel")
    why = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return Named(samples.with_columns(unknown), stacks.with_columns(unknown), kernels_table([UNKNOWN]), why)


class _Numbering:
    """Numbers kernels over several resolvers: one that is met again has its number."""

    def __init__(self) -> None:
        self.kernels: dict[Kernel, int] = {}

    def number(self, kernel: Kernel) -> int:
        return self.kernels.setdefault(kernel, len(self.kernels))

    def mark_unknown(self, numbers: Numbers, where: NDArray[np.bool_]) -> None:
        if where.any():
            numbers[where] = self.number(UNKNOWN)

    def of(self, resolver: Resolver, addresses: Addresses) -> Numbers:
        found, kernels = resolver.resolve(addresses)
        return np.array([self.number(kernel) for kernel in kernels], dtype=np.int64)[found]


def _resolver(
    mappings: Sequence[Mapping], known: Sequence[Known], vdso: bytes, kernel: Callable[[], KernelSymbols]
) -> Resolver:
    return Resolver([mapped(mapping) for mapping in mappings], known, vdso=vdso, kernel=kernel)


def mapped(mapping: Mapping) -> Mapped:
    """As names of code want it."""
    return Mapped(mapping.address, mapping.address + mapping.size_bytes, mapping.offset_bytes, mapping.file)


def _epochs(mappings: Sequence[Mapping], since_ns: int) -> list[tuple[int | None, int]]:
    """(until when, how many of the mappings then count): after ``since_ns`` an epoch ends where a mapping covers what
    was another file's code. The last one has no end."""
    begins = np.array([mapping.address for mapping in mappings], dtype=np.uint64)
    ends = begins + np.array([mapping.size_bytes for mapping in mappings], dtype=np.uint64)
    epochs: list[tuple[int | None, int]] = []
    for number, mapping in enumerate(mappings):
        if mapping.time_ns > since_ns:
            covered = np.flatnonzero((begins[:number] < ends[number]) & (begins[number] < ends[:number]))
            if any(not _same_code(mapping, mappings[earlier]) for earlier in covered.tolist()):
                epochs.append((mapping.time_ns, number))
    return [*epochs, (None, len(mappings))]


def _same_code(mapping: Mapping, earlier: Mapping) -> bool:
    """Whether both agree on each address that they have in common."""
    if mapping.file != earlier.file:
        return False
    anonymous = mapped(mapping).is_anonymous
    return anonymous or mapping.address - mapping.offset_bytes == earlier.address - earlier.offset_bytes
