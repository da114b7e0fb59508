"""What the whole machine's memory controllers moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from hwprof.report.document.part import Part
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    import polars as pl

    from hwprof.analysis.run_analysis import RunAnalysis

PREFIX: Final = "uncore/"
"""Series of the whole machine."""

Kind = Literal["stage", "layer", "layer type"]


class Traffic(msgspec.Struct, kw_only=True, frozen=True):
    """What was moved while a layer or stage ran. Measured; other programs' traffic is in it. The rate is null where the
    readings around the windows' edges leave too much of it open."""

    series: str
    kind: Kind
    owner: str
    windows: int
    seconds: float
    bytes: float
    bytes_error: float
    gbytes_per_s: float | None
    gbytes_per_s_error: float | None


class Dram(Part, kw_only=True, frozen=True):
    """By series and owner."""

    largest_error: float  # as a share of the bytes; where more is open, there is no rate
    rows: list[Traffic]


PART: Final = Dram


def build(analysis: RunAnalysis) -> Dram | Unavailable:
    """From the main pass."""
    if analysis.dram is None:
        return Unavailable("no pass was completed")
    from hwprof.analysis.uncore import OPEN

    found = analysis.dram
    tables: tuple[tuple[Kind, pl.DataFrame], ...] = (
        ("stage", found.stages),
        ("layer", found.layers),
        ("layer type", found.layer_types),
    )
    rows = [Traffic(kind=kind, **row) for kind, table in tables for row in table.iter_rows(named=True)]
    return Dram(largest_error=OPEN, rows=rows) if rows else Unavailable("the memory controllers were not read")
