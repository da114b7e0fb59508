"""Python's call stacks over time, from the looks of somebody at them, and which of them a sample fell into."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import polars as pl

from hwprof.run.details import PythonStacksDetail
from hwprof.run.manifest import PassRecord

STACKS: Final = pl.Schema(
    {
        "stack": pl.Int32,
        "parent": pl.Int32,  # the stack of those that call; null: nobody does. It comes before
        "function": pl.String,
        "file": pl.String,
        "line": pl.Int32,
    }
)
"""Each stack once, by what is on its top."""

TIMES: Final = pl.Schema({"tid": pl.Int32, "begin_ns": pl.Int64, "end_ns": pl.Int64, "stack": pl.Int32})
"""When a thread had which stack, one after the other."""

_KEYS: Final = ("depth", "function", "file", "line", "begin_ns", "end_ns")


class PythonStacks(NamedTuple):
    """Of one pass: ``STACKS`` and ``TIMES``."""

    stacks: pl.DataFrame
    times: pl.DataFrame


def rate_hz(record: PassRecord) -> float | None:
    """How often somebody looked in that pass; None where nobody says."""
    details = (collector.detail_as(PythonStacksDetail) for collector in record.collectors)
    return next((detail.rate_hz for detail in details if detail is not None), None)


def lag_ns(looks_hz: float | None) -> int:
    """How much later, on average, a look tells of what has begun or ended: half of the distance of two looks. What it
    finds new has begun since the look before, at some time or other."""
    return round(0.5e9 / looks_hz) if looks_hz else 0


def python_stacks(frames: pl.DataFrame, looks_hz: float | None) -> PythonStacks:
    """From rows of ``python_frames`` of one pass; times are right on average, see ``lag_ns``."""
    numbers: dict[tuple[Any, ...], int] = {}
    times: list[tuple[int, int, int, int]] = []
    ordered = frames.sort("begin_ns", "depth", "end_ns")
    for (tid,), rows in ordered.partition_by("tid", as_dict=True, maintain_order=True).items():
        times += [(int(tid), *found) for found in _times(rows.select(_KEYS).iter_rows(), numbers)]
    lag = lag_ns(looks_hz)
    table = pl.DataFrame(times, schema=TIMES, orient="row").sort("tid", "begin_ns")
    return PythonStacks(
        pl.DataFrame([(number, *key) for key, number in numbers.items()], schema=STACKS, orient="row"),
        table.with_columns(pl.col("begin_ns", "end_ns") - lag),
    )


def stacks_at(samples: pl.DataFrame, times: pl.DataFrame, main_tid: int | None) -> pl.Series:
    """Of each sample (``time_ns``, ``tid``) the stack that its thread had then; null where there was none.

    A thread that runs no Python at all works for the one that calls the model: it has that one's.
    """
    own = pl.col("tid").is_in(times["tid"].unique().implode())
    asked = samples.select("time_ns", tid=pl.when(own).then("tid").otherwise(pl.lit(main_tid, pl.Int32)))
    found = (
        asked.with_row_index("sample")
        .sort("time_ns")
        .join_asof(times.sort("begin_ns"), left_on="time_ns", right_on="begin_ns", by="tid", check_sortedness=False)
        .sort("sample")
    )
    return found.select(stack=pl.when(pl.col("time_ns") < pl.col("end_ns")).then("stack"))["stack"]


def _times(
    rows: Iterable[tuple[int, str, str, int, int, int]], numbers: dict[tuple[Any, ...], int]
) -> Iterator[tuple[int, int, int]]:
    """Of one thread: begin, end and stack. Callers stand before those that they call, and end no earlier."""
    opened: list[tuple[int, int, int]] = []  # depth, end, stack
    since_ns = 0

    def until(end_ns: int) -> Iterator[tuple[int, int, int]]:
        nonlocal since_ns
        if opened and end_ns > since_ns:
            yield since_ns, end_ns, opened[-1][2]
        since_ns = max(since_ns, end_ns)

    for depth, function, file, line, begin_ns, end_ns in rows:
        while opened and (opened[-1][1] <= begin_ns or opened[-1][0] >= depth):
            yield from until(min(opened[-1][1], begin_ns))
            opened.pop()
        yield from until(begin_ns)
        since_ns = begin_ns
        key = (opened[-1][2] if opened else None, function, file, line)
        opened.append((depth, end_ns, numbers.setdefault(key, len(numbers))))
    while opened:
        yield from until(opened[-1][1])
        opened.pop()
