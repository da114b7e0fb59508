"""What each layer allocates, frees and keeps, from the framework's allocations over time.

Layers run one at a time: whatever any thread allocates between a layer's begin and end is that layer's, the innermost
of nested modules. A piece of memory is kept where it was allocated within a call and is not freed within it; of a
module that calls itself the outermost call tells.

Nobody sees frees of what was allocated before the pass was watched. Blocks that live for k iterations are seen freed
after the first k watched ones: what is freed of them is the mean of these, and of these are peaks of calls that do.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hwprof.analysis.attribution import overlaps, owning_spans, whole_spans, within
from hwprof.analysis.owners import UNATTRIBUTED, WHOLE
from hwprof.analysis.timeline import NONE, Timeline
from hwprof.analysis.unwatched_threads import SCHEMA as TIMES
from hwprof.analysis.unwatched_threads import met
from hwprof.unavailable import Unavailable

Numbers = NDArray[np.int64]

SUMS: Final[dict[str, pl.DataType]] = {
    "allocations": pl.Float64(),  # how many, in one iteration; the mean, as of all sums
    "allocated_bytes": pl.Float64(),
    "freed_bytes": pl.Float64(),
    "kept_bytes": pl.Float64(),  # allocated within a call, and not freed within it
}

SCHEMA: Final = pl.Schema(
    {
        "layer": pl.String(),  # an owner of ``attribution``, ``UNATTRIBUTED`` or ``WHOLE``
        **SUMS,  # all of them null: there were threads whose allocations nobody sees
        "largest_bytes": pl.Int64(),  # of all allocations
        "peak_bytes": pl.Int64(),  # of all calls, the most above what was allocated at its begin; null: of own code
    }
)

MODULES: Final = pl.Schema({"module": pl.String(), **SUMS, "largest_bytes": pl.Int64(), "peak_bytes": pl.Int64()})
"""Of modules with others in them, with all that happens in these."""

OF_ONE: Final = pl.Schema(
    {
        "allocations": pl.Int64(),
        "allocated_bytes": pl.Int64(),
        "freed_bytes": pl.Float64(),  # weighted
        "kept_bytes": pl.Int64(),
        "largest_bytes": pl.Int64(),
        "peak_bytes": pl.Int64(),
        "age": pl.Int64(),  # of the oldest block that it frees, in iterations
    }
)
"""Of a stretch of time."""

DECIMALS: Final = 6
"""Of a byte: weights are no whole numbers."""

LEAST_SEEN: Final = 2
"""Iterations that must have frees of blocks of an age, and all that could, for others to have had them too: what is
freed once in many iterations (garbage collection) is no part of each."""


class Events:
    """Allocations and frees in order of time, as arrays."""

    def __init__(self, allocations: pl.DataFrame, begins_ns: Numbers, chosen: Numbers) -> None:
        """``begins_ns``: of the pass's iterations, in order; ``chosen``: numbers in it of those that figures are of."""
        ordered = allocations.sort("time_ns", maintain_order=True)
        self.times_ns: Numbers = ordered["time_ns"].to_numpy()
        self.bytes: Numbers = ordered["bytes"].to_numpy()
        self.freed_at: Numbers = _freed_at(ordered)
        self.total: Numbers = np.concatenate(([0], np.cumsum(self.bytes)))
        self._begins_ns = begins_ns
        iterations = self.iteration_at(self.times_ns)
        self.first = max(int(iterations[0]), 0) if len(iterations) else 0  # iteration that was watched
        self.ages, self.weights = _ages(self.freed_at, self.bytes, iterations, chosen, self.first)

    def iteration_at(self, times_ns: Numbers) -> Numbers:
        """-1 before the first one; what is between two is of the earlier one."""
        return np.searchsorted(self._begins_ns, times_ns, side="right") - 1

    def between(self, begins_ns: Numbers, ends_ns: Numbers) -> tuple[Numbers, Numbers]:
        """Of each stretch of time the first event in it and the first behind it."""
        return np.searchsorted(self.times_ns, begins_ns), np.searchsorted(self.times_ns, ends_ns)


def layer_allocations(
    allocations: pl.DataFrame,
    spans: pl.DataFrame,
    layers: pl.DataFrame,
    iterations: tuple[int, ...],
    unwatched: pl.DataFrame | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame] | Unavailable:
    """Of the inference in these iterations: ``SCHEMA``, a row an owner, and ``MODULES``; both most allocated first.
    ``allocations`` and ``spans`` are the pass's. Rows of owners add up to that of ``WHOLE``; those in which there were
    ``unwatched`` threads (times as ``unwatched_threads.merged`` makes them) have nothing but their names."""
    kept = spans.filter(pl.col("iteration").is_in(list(iterations)))
    wholes, _ = whole_spans(kept)
    owned = within(owning_spans(kept, layers), wholes)
    if overlaps(owned.filter("leaf", "outermost")):
        return Unavailable("layers of several threads ran at a time: nobody knows which of them allocated")
    begins = spans.filter(pl.col("iteration") >= 0).group_by("iteration").agg(pl.col("begin_ns").min()).sort("begin_ns")
    chosen = np.flatnonzero(begins["iteration"].is_in(list(iterations)).to_numpy())
    events, number = Events(allocations, begins["begin_ns"].to_numpy(), chosen), max(len(iterations), 1)
    of_wholes = _within(events, wholes.select("begin_ns", "end_ns", name=pl.lit(WHOLE)), number)
    by_owner = _by_owner(events, owned, wholes, number)
    peaks = _within(events, owned.filter("leaf", "outermost").select("begin_ns", "end_ns", name="owner"), number)
    found = by_owner.join(peaks.select("name", "peak_bytes"), on="name", how="left")
    rows = pl.concat([found.select(of_wholes.columns), of_wholes]).rename({"name": "layer"})
    inner = owned.filter(~pl.col("leaf"), "outermost").select("begin_ns", "end_ns", name="path")
    modules = _within(events, inner, number).rename({"name": "module"})
    times = unwatched if unwatched is not None else pl.DataFrame(schema=TIMES)
    rows = _without(rows, "layer", _owners_met(owned, wholes, times))
    modules = _without(modules, "module", set(inner["name"].filter(met(inner, times))))
    return (
        rows.sort("allocated_bytes", "layer", descending=[True, False], nulls_last=True)
        .select(SCHEMA.names())
        .cast(SCHEMA),
        modules.sort("allocated_bytes", "module", descending=[True, False], nulls_last=True)
        .select(MODULES.names())
        .cast(MODULES),
    )


def _owners_met(owned: pl.DataFrame, wholes: pl.DataFrame, times: pl.DataFrame) -> set[str]:
    """The owners in whose time any of these are, and ``WHOLE``."""
    inside = met(wholes, times)
    if not inside.any():
        return set()
    begins, ends = times["begin_ns"].to_numpy(), times["end_ns"].to_numpy()
    _, rows, shared_ns = Timeline.of(owned).overlaps(begins, ends)
    _, _, whole_ns = Timeline.of(wholes).overlaps(begins, ends)
    nobodys = {UNATTRIBUTED} if shared_ns.sum() < whole_ns.sum() else set()
    return {WHOLE, *nobodys, *owned["owner"].gather(np.unique(rows))}


def _without(rows: pl.DataFrame, name: str, unknown: set[str]) -> pl.DataFrame:
    """Nothing of these rows is known."""
    known = ~pl.col(name).is_in(pl.Series(sorted(unknown), dtype=pl.String).implode())
    return rows.with_columns(pl.when(known).then(pl.exclude(name)).name.keep())


def _freed_at(ordered: pl.DataFrame) -> Numbers:
    """Of each allocation the number of the event that frees it; beyond the last one where none does. Of frees: their
    own."""
    numbered = ordered.with_row_index("event").select(pl.col("event").cast(pl.Int64), "address", "bytes")
    following = pl.col("event").shift(-1).over("address", order_by="event")
    frees_it = pl.col("bytes").shift(-1).over("address", order_by="event") < 0
    found = numbered.select(
        pl.when(pl.col("bytes") <= 0)
        .then("event")
        .otherwise(pl.when(frees_it).then(following).otherwise(pl.lit(ordered.height, pl.Int64)))
        .fill_null(ordered.height)
    )
    return found.to_series().to_numpy()


def _ages(
    freed_at: Numbers, sizes: Numbers, iterations: Numbers, chosen: Numbers, first: int
) -> tuple[Numbers, NDArray[np.float64]]:
    """Of each free for how many iterations its block lived, 0 where blocks of that age are not freed in every iteration
    that could see it; and how many frees of the ``chosen`` iterations it stands for."""
    known = (sizes > 0) & (freed_at < len(sizes)) & (iterations >= 0)
    lived = np.zeros(len(sizes), dtype=np.int64)
    lived[freed_at[known]] = iterations[freed_at[known]] - iterations[known]
    ages, weights = np.zeros_like(lived), np.ones(len(sizes))
    for age in np.unique(lived[lived > 0]):
        able = chosen[chosen - age >= first]
        if len(able) >= LEAST_SEEN and np.isin(able, iterations[lived == age]).all():
            ages[lived == age] = age
            weights[lived == age] = len(chosen) / len(able)
    return ages, weights


def _within(events: Events, stretches: pl.DataFrame, number: int) -> pl.DataFrame:
    """Of stretches of time (``begin_ns``, ``end_ns``, ``name``) all that happens in them, by name; of ``number``
    iterations."""
    first, behind = events.between(stretches["begin_ns"].to_numpy(), stretches["end_ns"].to_numpy())
    found = _of_each(events, first, behind).with_columns(
        stretches["name"], iteration=events.iteration_at(stretches["begin_ns"].to_numpy()) - events.first
    )
    oldest = pl.col("age").max()
    sees_all = (oldest == 0) | (pl.col("iteration") >= oldest)
    return found.group_by("name", maintain_order=True).agg(
        *[(pl.col(name).sum() / number).round(DECIMALS) for name in SUMS],
        pl.col("largest_bytes").max(),
        pl.col("peak_bytes").filter(sees_all).max(),
    )


def _of_each(events: Events, first: Numbers, behind: Numbers) -> pl.DataFrame:
    """``OF_ONE``: a row for each stretch, from its first event to the one behind it."""
    lengths = behind - first
    stretch = np.repeat(np.arange(len(first)), lengths)
    at = np.arange(len(stretch)) + np.repeat(first - (np.cumsum(lengths) - lengths), lengths)
    sizes = events.bytes[at]
    gained = np.maximum(sizes, 0)
    inside = pl.DataFrame(
        {
            "stretch": stretch,
            "allocations": (sizes > 0).astype(np.int64),
            "allocated_bytes": gained,
            "freed_bytes": np.where(sizes > 0, 0.0, -sizes * events.weights[at]),
            "kept_bytes": np.where(events.freed_at[at] >= behind[stretch], gained, 0),
            "largest_bytes": gained,
            "peak_bytes": np.maximum(events.total[at + 1] - events.total[first[stretch]], 0),
            "age": events.ages[at],
        }
    )
    most = ("largest_bytes", "peak_bytes", "age")
    sums = inside.group_by("stretch").agg(pl.exclude(*most).sum(), pl.col(most).max())
    every = pl.DataFrame({"stretch": np.arange(len(first))})
    return (
        every.join(sums, on="stretch", how="left", maintain_order="left")
        .fill_null(0)
        .select(OF_ONE.names())
        .cast(OF_ONE)
    )


def _by_owner(events: Events, owned: pl.DataFrame, wholes: pl.DataFrame, number: int) -> pl.DataFrame:
    """What happens while each owner is the innermost, and while none is."""
    inside = Timeline.of(wholes).at(events.times_ns) != NONE
    rows = np.where(inside, Timeline.of(owned).at(events.times_ns), NONE)
    _, behind = events.between(owned["begin_ns"].to_numpy(), owned["left_ns"].to_numpy())
    until = np.append(behind, len(events.bytes))[rows]  # that of NONE is the last: nobody knows of a call
    table = pl.DataFrame(
        {
            "row": np.where(rows == NONE, owned.height, rows),
            "bytes": events.bytes,
            "weight": events.weights,
            "stays": (events.bytes > 0) & (events.freed_at >= until),
        }
    ).filter(pl.Series(inside, dtype=pl.Boolean))
    names = pl.concat([owned["owner"], pl.Series([UNATTRIBUTED])])
    size = pl.col("bytes")
    sums = {
        "allocations": (size > 0).sum(),
        "allocated_bytes": size.filter(size > 0).sum(),
        "freed_bytes": (-size * pl.col("weight")).filter(size <= 0).sum(),
        "kept_bytes": size.filter("stays").sum(),
    }
    found = (
        table.with_columns(name=names.gather(table["row"]))
        .group_by("name")
        .agg(
            *[value.cast(pl.Float64).truediv(number).round(DECIMALS).alias(name) for name, value in sums.items()],
            largest_bytes=size.filter(size > 0).max(),
        )
    )
    every = names.rename("name").unique(maintain_order=True).to_frame()
    return every.join(found, on="name", how="left").fill_null(0)
