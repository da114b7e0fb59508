"""Which functions of Python each thread was in, from the looks of somebody at its stack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import polars as pl

SCHEMA: Final = pl.Schema(
    {
        "tid": pl.Int32,
        "depth": pl.Int32,
        "function": pl.String,
        "file": pl.String,
        "line": pl.Int32,  # that it had reached at the first look
        "begin_ns": pl.Int64,
        "end_ns": pl.Int64,
    }
)

_KEYS: Final = ("tid", "depth", "function", "file", "line", "begin_ns", "end_ns")


class _Open(NamedTuple):
    """A function that may go on."""

    function: str
    file: str
    line: int
    begin_ns: int
    end_ns: int


def calls(frames: pl.DataFrame) -> pl.DataFrame:
    """Rows of ``python_frames`` of one pass, in ``SCHEMA``: as long as a function stays on the stack, below the same
    call, it is one row, whatever line it reaches. Two calls that no look fell between are one."""
    found: list[tuple[Any, ...]] = []
    for (tid,), rows in frames.sort("begin_ns", "depth").partition_by("tid", as_dict=True, maintain_order=True).items():
        found += [(tid, *call) for call in _joined(rows.select(_KEYS[1:]))]
    return pl.DataFrame(found, schema=SCHEMA, orient="row").sort("tid", "begin_ns", "depth")


def _joined(frames: pl.DataFrame) -> Iterator[tuple[Any, ...]]:
    """Of one thread; callers stand before those that they call."""
    opened: list[_Open] = []
    for depth, function, file, line, begin_ns, end_ns in frames.iter_rows():
        if depth < len(opened):
            last = opened[depth]
            if (last.function, last.file, last.end_ns) == (function, file, begin_ns):
                opened[depth] = last._replace(end_ns=end_ns)
                continue
        yield from _closed(opened, depth)
        opened.append(_Open(function, file, line, begin_ns, end_ns))
    yield from _closed(opened, 0)


def _closed(opened: list[_Open], depth: int) -> Iterator[tuple[Any, ...]]:
    """Those from that depth on are over; above it some may be missing, where the begin of a file is."""
    yield from ((number, *opened[number]) for number in range(depth, len(opened)))
    del opened[depth:]
