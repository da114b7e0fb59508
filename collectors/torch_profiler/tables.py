"""What torch.profiler recorded as the run's tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import polars as pl

from collectors.torch_profiler import profile_file
from collectors.torch_profiler.profile_file import ProfileFile, shapes
from collectors.torch_profiler.recording import MARK, Recording
from hwprof.collector import clocks
from hwprof.errors import HwprofError
from hwprof.run.manifest import ClockRecord

TORCH: Final = "memory/torch"
"""What torch has allocated since the profiler began, less what it freed."""

OPERATOR_KINDS: Final = ("cpu_op", "user_annotation")

OPERATORS: Final = pl.Schema(
    {
        "pid": pl.Int32,
        "tid": pl.Int32,
        "path": pl.String,
        "unix_ns": pl.Int64,
        "duration_ns": pl.Int64,
        "input_shapes": pl.String,
    }
)
ALLOCATIONS: Final = pl.Schema(
    {"unix_ns": pl.Int64, "pid": pl.Int32, "tid": pl.Int32, "address": pl.UInt64, "bytes": pl.Int64}
)


def tables(recording: Recording) -> tuple[ClockRecord, dict[str, pl.DataFrame]]:
    """The profiler's clock, and the rows of ``spans``, ``allocations`` and ``series`` (``TORCH``), without pass,
    iteration and span number. One piece is read at a time. Raises ``HwprofError`` where not all marks are there, and
    as ``profile_file.read``."""
    stamps, operators, allocations = list[int](), list[pl.DataFrame](), list[pl.DataFrame]()
    for file in recording.files:
        found = _read(file)
        stamps += found[0]
        operators.append(found[1])
        allocations.append(found[2])
    clock = clocks.fit("torch.profiler", _marks(stamps, recording.brackets))
    table = pl.concat(allocations).sort("unix_ns", maintain_order=True)
    at = clocks.monotonic(clock, pl.col("unix_ns"))
    table = table.select(at.alias("time_ns"), pl.exclude("unix_ns"))
    return clock, {
        "spans": pl.concat(operators).select(
            "pid",
            "tid",
            pl.lit("op").alias("kind"),
            "path",
            at.alias("begin_ns"),
            (at + pl.col("duration_ns")).alias("end_ns"),
            "input_shapes",
        ),
        "allocations": table,
        "series": table.select(
            "time_ns", name=pl.lit(TORCH), unit=pl.lit("B"), value=pl.col("bytes").cum_sum().cast(pl.Float64)
        ),
    }


def _read(file: Path) -> tuple[list[int], pl.DataFrame, pl.DataFrame]:
    """A piece's marks, operators and allocations."""
    document = profile_file.read(file)
    stamps = [document.unix_ns(event.ts) for event in document.events if event.ph == "X" and event.name == MARK]
    return stamps, _operators(document), _allocations(document)


def _marks(stamps: Sequence[int], brackets: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """The marks as (foreign_ns, earliest_ns, latest_ns). Raises ``HwprofError`` where not all of them are there."""
    if len(stamps) != len(brackets):
        raise HwprofError(
            f"it recorded {len(stamps)} of {len(brackets)} marks: another torch.profiler was at work in the process",
            "take the model's own out while it is measured",
        )
    return [(stamp, low, high) for stamp, (low, high) in zip(sorted(stamps), brackets, strict=True)]


def _operators(document: ProfileFile) -> pl.DataFrame:
    events = [
        event for event in document.events if event.ph == "X" and event.cat in OPERATOR_KINDS and event.name != MARK
    ]
    return pl.DataFrame(
        {
            "pid": [int(event.pid) for event in events],
            "tid": [int(event.tid) for event in events],
            "path": [event.name for event in events],
            "unix_ns": [document.unix_ns(event.ts) for event in events],
            "duration_ns": [round(event.dur * 1000) for event in events],
            "input_shapes": [shapes(bytes(event.args.dimensions)) if event.args else None for event in events],
        },
        schema=OPERATORS,
    )


def _allocations(document: ProfileFile) -> pl.DataFrame:
    events = list(profile_file.allocations(document))
    return pl.DataFrame(
        {
            "unix_ns": [document.unix_ns(event.time_us) for event in events],
            "pid": [event.pid for event in events],
            "tid": [event.tid for event in events],
            "address": [event.address for event in events],
            "bytes": [event.bytes for event in events],
        },
        schema=ALLOCATIONS,
    )
