"""Theoretical peaks: what the data sheet says a core does in a cycle, times the clock that was measured."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hwprof.data_files import read_toml
from hwprof.run.manifest import Machine
from hwprof.run.peaks import Theoretical

FILE = "data_sheet.toml"


class Sheet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Operations of a core in a cycle."""

    fp32: int
    how: str
    bf16: int | None = None
    int8: int | None = None


def sheets() -> dict[str, Sheet]:
    """By the id of the event catalogue's processor."""
    return read_toml(__name__, FILE, dict[str, Sheet])


def theoretical(machine: Machine, threads: Sequence[int], clock_ghz: float | None) -> list[Theoretical]:
    """Of each number of threads; none where the processor or its clock is not known, or where its cores differ."""
    names = {kind.microarchitecture for kind in machine.cores}
    sheet = sheets().get(names.pop() or "") if len(names) == 1 else None
    if sheet is None or clock_ghz is None:
        return []
    return [
        Theoretical(
            what=what,
            threads=number,
            value=per_cycle * clock_ghz * number,
            unit="GOP/s" if what == "int8" else "GFLOP/s",
            source=f"{per_cycle} a cycle ({sheet.how}) x {clock_ghz:.2f} GHz",
        )
        for number in sorted(set(threads))
        for what, per_cycle in (("fp32", sheet.fp32), ("bf16", sheet.bf16), ("int8", sheet.int8))
        if per_cycle is not None
    ]
