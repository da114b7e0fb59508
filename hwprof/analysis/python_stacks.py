"""Python's call stacks over time, from the looks of somebody at them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
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
        "origin": pl.String,  # ``Origin``
    }
)
"""Each stack once, by what is on its top."""

TIMES: Final = pl.Schema({"tid": pl.Int32, "begin_ns": pl.Int64, "end_ns": pl.Int64, "stack": pl.Int32})
"""From which look on a thread was met with which stack, and the look that met another one; by begin."""

RUNPY: Final = ("<frozen runpy>", "/runpy.py")
"""Endings of files that start a process by ``python -m``, as hwprof starts its own."""

_KEYS: Final = ("depth", "function", "file", "line", "begin_ns", "end_ns")


class Origin(StrEnum):
    """Whose code a function is."""

    PIPELINE = "pipeline"
    FRAMEWORK = "framework"
    PROFILER = "profiler"


class Looks(NamedTuple):
    """How somebody looked at the stacks of a pass."""

    rate_hz: float | None = None  # None: nobody says
    error_ns: int = 0  # of a look's time
    profiler: Sequence[str] = ()
    framework: Sequence[str] = ()

    @property
    def lag_ns(self) -> int:
        """How much later, on average, a look tells of what has begun or ended: the mean distance of two looks. They
        come at random, so that at any moment the next one is as far away as right after a look."""
        return round(1e9 / self.rate_hz) if self.rate_hz else 0

    @property
    def draws_hz(self) -> float | None:
        """What the looks of a second are worth for a share of it, as independent draws of equal weight; None: nobody
        says how many there are. Half of them, since each stands for the time until the next one, and these times are
        exponential (py-spy's): 1 / E[sum of w²] with w of Dirichlet(1, …, 1)."""
        return self.rate_hz / 2 if self.rate_hz else None

    def origins(self, files: pl.Series) -> pl.Series:
        """Whose each file's code is; each file is looked at once."""
        known = {file: self._origin(file) for file in files.unique() if file is not None}
        return files.replace_strict(known, default=None, return_dtype=pl.String)

    def _origin(self, file: str) -> Origin:
        if _lies_in(file, self.framework):
            return Origin.FRAMEWORK
        return Origin.PROFILER if file.endswith(RUNPY) or _lies_in(file, self.profiler) else Origin.PIPELINE


class PythonStacks(NamedTuple):
    """Of one pass: ``STACKS`` and ``TIMES``."""

    stacks: pl.DataFrame
    times: pl.DataFrame


def looks_of(record: PassRecord) -> Looks:
    """What the manifest says."""
    details = (collector.detail_as(PythonStacksDetail) for collector in record.collectors)
    found = next((detail for detail in details if detail is not None), None)
    if found is None:
        return Looks()
    errors = [clock.error_ns for clock in record.clocks if clock.name == found.clock]
    return Looks(found.rate_hz, max(errors, default=0), found.profiler_paths, found.framework_paths)


def while_alive(frames: pl.DataFrame, lifetimes: pl.DataFrame) -> pl.DataFrame:
    """The rows of ``python_frames`` up to the end of their threads, by rows of ``lifetimes`` of the same pass: who
    looks at stacks does not hear of it, and holds the last one that it met. Threads without a row are as they were."""
    born = pl.col("born_ns").fill_null(0)
    lives = lifetimes.select("tid", begin_ns=born, ended_ns="ended_ns").unique().sort("begin_ns")
    if lives.is_empty():
        return frames
    found = (
        frames.with_row_index("row").sort("begin_ns").join_asof(lives, on="begin_ns", by="tid", check_sortedness=False)
    )
    until = pl.min_horizontal("end_ns", "ended_ns")
    return found.with_columns(end_ns=until).filter(until >= pl.col("begin_ns")).sort("row").select(frames.columns)


def of_pipeline(frames: pl.DataFrame, looks: Looks) -> pl.DataFrame:
    """The rows of ``python_frames`` without those of the profiler's functions that no other function calls: what runs
    the pipeline from outside, and what the profiler does beside it."""
    ordered = frames.sort("tid", "begin_ns", "depth", "end_ns")
    columns = (ordered[name] for name in ("tid", "depth", "begin_ns", "end_ns"))
    shown: list[bool] = []
    opened: list[tuple[int, int, int, bool]] = []  # thread, depth, end, and whether it is shown
    for tid, depth, begin_ns, end_ns, origin in zip(*columns, looks.origins(ordered["file"]), strict=True):
        while opened and (opened[-1][0] != tid or opened[-1][1] >= depth or opened[-1][2] <= begin_ns):
            opened.pop()
        shown.append(origin != Origin.PROFILER or bool(opened and opened[-1][3]))
        opened.append((tid, depth, end_ns, shown[-1]))
    return ordered.filter(pl.Series(shown, dtype=pl.Boolean))


def python_stacks(frames: pl.DataFrame, looks: Looks) -> PythonStacks:
    """From rows of ``python_frames`` of one pass."""
    numbers: dict[tuple[Any, ...], int] = {}
    times: list[tuple[int, int, int, int]] = []
    ordered = frames.sort("begin_ns", "depth", "end_ns")
    for (tid,), rows in ordered.partition_by("tid", as_dict=True, maintain_order=True).items():
        times += [(int(tid), *found) for found in _times(rows.select(_KEYS).iter_rows(), numbers)]
    table = pl.DataFrame(times, schema=TIMES, orient="row").sort("begin_ns", "tid")
    keys = {name: kind for name, kind in STACKS.items() if name != "origin"}
    stacks = pl.DataFrame([(number, *key) for key, number in numbers.items()], schema=keys, orient="row")
    return PythonStacks(stacks.with_columns(origin=looks.origins(stacks["file"])), table)


def _lies_in(file: str, places: Sequence[str]) -> bool:
    return any(file == place or file.startswith(f"{place}/") for place in places)


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
