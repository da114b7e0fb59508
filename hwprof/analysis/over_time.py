"""What an iteration took, and how fast the core ran, over the time of a pass: machines grow hot, neighbours come and
go, and a median shows nothing of it."""

from __future__ import annotations

from collections import Counter
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import polars as pl

from hwprof.analysis.core_clock import frequencies
from hwprof.analysis.disturbed import is_disturbed
from hwprof.run.manifest import IterationRecord, PassRecord

Kind: TypeAlias = Literal["timed", "counted", "bare"]
"""What is done beside the work differs, so iterations of one kind are compared: ``timed`` ones time their layers,
``counted`` ones read counters at their edges, too, ``bare`` ones do neither."""

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
"""Of two that are as frequent, the first."""

PARTS: Final = 40
"""Of the pass: as many characters fit beside three figures."""


class OverTime(NamedTuple):
    """``parts``, in order, each of as many iterations (give or take one): ``begin_ns`` of the first one, ``end_ns`` of
    the last one, how many ``iterations`` and how many of them ``disturbed``, ``min_ns``, ``median_ns`` and ``max_ns``
    of their times, ``ghz``: the median of the core's frequency meanwhile, null: not probed."""

    kind: Kind
    parts: pl.DataFrame

    @property
    def iterations(self) -> int:
        """In all parts."""
        return int(self.parts["iterations"].sum())


def over_time(record: PassRecord, spans: pl.DataFrame, series: pl.DataFrame, most: int = PARTS) -> OverTime | None:
    """A pass after its warm-up, in ``most`` parts, or as many as it has iterations of the most frequent kind; the three
    tables' rows are the pass's. None where no iteration was measured."""
    kinds = {entry.index: kind for entry in record.iterations if (kind := _kind(entry)) is not None}
    if not kinds:
        return None
    numbers = Counter(kinds.values())
    chosen = max(KINDS, key=lambda kind: numbers[kind])
    indices = [index for index, kind in kinds.items() if kind == chosen]
    disturbed = [entry.index for entry in record.iterations if is_disturbed(entry)]
    mine = (
        spans.filter((pl.col("kind") == "iteration") & pl.col("iteration").is_in(indices))
        .sort("begin_ns")
        .select(
            "begin_ns",
            "end_ns",
            time_ns=pl.col("end_ns") - pl.col("begin_ns"),
            disturbed=pl.col("iteration").is_in(disturbed),
        )
    )
    if mine.is_empty():
        return None
    number = min(most, mine.height)
    parts = (
        mine.with_row_index("place")
        .group_by(part=pl.col("place").cast(pl.Int64) * number // mine.height, maintain_order=True)
        .agg(
            pl.col("begin_ns").min(),
            pl.col("end_ns").max(),
            iterations=pl.len().cast(pl.Int64),
            disturbed=pl.col("disturbed").sum().cast(pl.Int64),
            min_ns=pl.col("time_ns").min(),
            median_ns=pl.col("time_ns").median(),
            max_ns=pl.col("time_ns").max(),
        )
    )
    return OverTime(chosen, _with_frequencies(parts, frequencies(record, series)))


def _kind(entry: IterationRecord) -> Kind | None:
    if entry.bare:
        return "bare"
    if entry.warmup or entry.alone_for is not None:
        return None
    return "counted" if entry.layers_counted else "timed"


def _with_frequencies(parts: pl.DataFrame, probes: pl.DataFrame) -> pl.DataFrame:
    """Of the probes from a part's begin to the next one's."""
    begins = parts.select("part", "begin_ns")
    found = (
        probes.sort("time_ns")
        .join_asof(begins.sort("begin_ns"), left_on="time_ns", right_on="begin_ns", strategy="backward")
        .drop_nulls("part")
        .group_by("part")
        .agg(ghz=pl.col("value").median())
    )
    return parts.join(found, on="part", how="left", maintain_order="left").drop("part")
