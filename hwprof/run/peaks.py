"""What a machine can do at most, as it was measured: part of a run's manifest, and kept for each machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal

import msgspec

Unit = Literal["GFLOP/s", "GOP/s", "GB/s", "ns", "GHz"]

DRAM: Final = "DRAM"
"""The level below all caches."""

USUAL_PAGES: Final = "latency-usual"
"""Of a load from DRAM anywhere in a large piece of memory, in pages as the allocator has them. Where these are small
each load's page has to be looked up too, in a virtual machine in two tables (a Zen 1: 160 to 280 ns; in huge pages 105
to 145)."""

NEW_PAGE: Final = "new-page"
"""What a page fault costs, with what giving the page back does."""


NOISY: Final = 0.05
"""Of all processors' time, taken by others: what was measured meanwhile is too low."""

SCALES: Final = 0.75
"""Of what one thread does times their number, threads on cores of their own do at least so much arithmetic: less, and
others had a core meanwhile (or what looks like cores are two threads of one, as some virtual machines have them)."""

LEAST: Final = 1e-9
MOST: Final = 1e18


Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Number = Annotated[int, msgspec.Meta(ge=1)]
Amount = Annotated[float, msgspec.Meta(ge=0)]


class Peak(msgspec.Struct, kw_only=True, frozen=True):
    """The best of several repetitions, by so many threads, each on a core of its own."""

    what: str  # fp32, bf16, int8; gemm-fp32, gemm-bf16; read, triad, triad-nt; latency, latency-usual; clock; new-page
    level: str | None = None  # L1, L2, L3, DRAM: where what is read and written lies
    threads: Number
    value: float
    unit: Unit
    worst: Amount  # of the repetitions
    repetitions: Number
    how: str  # 512-bit, torch 2.13.0, numpy 2.4.6
    bytes: Number | None = None  # of a thread's data
    cores: Amount | None = None  # over that of one thread: how far it scales

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for what no machine does."""
        if not LEAST < self.value < MOST:
            raise ValueError(f"{self.what}: a peak of {self.value}")


def better(one: Peak, other: Peak) -> Peak:
    """Of two measurements of the same, at different times: who shares a machine (virtual ones do) has it for himself at
    one time and not at another."""
    best = one if (one.value >= other.value) != (one.unit == "ns") else other
    worst = min(one.worst, other.worst) if one.unit != "ns" else max(one.worst, other.worst)
    number = one.repetitions + other.repetitions
    return msgspec.structs.replace(best, worst=worst, repetitions=number)


def best_of(new: Peaks, old: Peaks) -> Peaks:
    """Of two disturbed measurements of the same machine the better of each figure, as of the time of the ``new`` one;
    what only the old one has is left out. ``theoretical`` is still the new one's, and has to follow from the clock that
    is kept."""
    known = {(one.what, one.level, one.threads): one for one in old.peaks}
    peaks = [
        better(one, known[key]) if (key := (one.what, one.level, one.threads)) in known else one for one in new.peaks
    ]
    shares = [one.others_share or 0.0 for one in (new, old)]
    return msgspec.structs.replace(
        new, peaks=scaled(peaks), others_share=min(shares), measurements=new.measurements + old.measurements
    )


def scaled(peaks: Sequence[Peak]) -> list[Peak]:
    """Each with how far it is above one thread's."""
    alone = {(one.what, one.level): one.value for one in peaks if one.threads == 1}
    return [
        msgspec.structs.replace(one, cores=one.value / alone[one.what, one.level])
        if one.threads > 1 and alone.get((one.what, one.level))
        else one
        for one in peaks
    ]


def why_no_loops(peaks: Peaks | None) -> NotMeasured | None:
    """Why nobody knows how fast the processor is; None where somebody does, or did not look."""
    return next((one for one in peaks.missing if one.what == "fp32"), None) if peaks is not None else None


def hindered(peaks: Sequence[Peak]) -> bool:
    """Whether threads together did less arithmetic than their cores do."""
    return any(one.what == "fp32" and (one.cores or one.threads) < SCALES * one.threads for one in scaled(peaks))


class NotMeasured(msgspec.Struct, kw_only=True, frozen=True):
    """What this machine may well have, and nobody could measure."""

    what: str
    reason: str
    remedy: str | None = None


class Theoretical(msgspec.Struct, kw_only=True, frozen=True):
    """By data sheet: operations a cycle times the measured clock."""

    what: str
    threads: Number
    value: Amount
    unit: Unit
    source: str


class Peaks(msgspec.Struct, kw_only=True):
    """All of one machine."""

    created: str  # ISO 8601, UTC
    machine: str  # what these peaks hold for: a digest of processor, caches, kernel's limits
    processor: str
    threads: list[Number]
    peaks: list[Peak]
    missing: list[NotMeasured] = []
    theoretical: list[Theoretical] = []
    others_share: Share | None = None  # of all processors' time that others took meanwhile; None: not known
    seconds: Amount = 0.0
    built_by: str | None = None  # the C compiler; None: none
    measurements: Number = 1  # disturbed ones, of which each peak is the best

    @property
    def disturbed(self) -> bool:
        """Whether others took so much meanwhile that they are too low, each by something else."""
        return (self.others_share or 0.0) > NOISY

    def find(self, what: str, threads: int | None = None, level: str | None = None) -> Peak | None:
        """The peak, by the most threads where none is named; None: not measured."""
        found = [one for one in self.peaks if (one.what, one.level) == (what, level)]
        found = [one for one in found if threads in (None, one.threads)]
        return max(found, key=lambda one: one.threads, default=None)
