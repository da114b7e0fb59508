"""How well the times of layers are known: by the layer that is known worst, of those that matter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:  # a worker asks while a pass goes on, and has no tables
    import polars as pl

SMALLEST_SHARE: Final = 0.005
"""Of the time of all layers: what a smaller one takes matters to nobody, and varies by more."""

FEWEST: Final = 6
"""Iterations: of fewer the errors of medians are not known (see ``statistics.median_error``)."""


class Worst(NamedTuple):
    """``error``: half of the 95% interval of the median time of ``layer``, of the median."""

    error: float
    layer: str


def known_worst(layers: pl.DataFrame) -> Worst | None:
    """Of the rows of ``layers.layer_table``; None where no leaf layer, or module's own code, with ``SMALLEST_SHARE`` of
    the time was timed in ``FEWEST`` iterations."""
    import polars as pl

    from hwprof.analysis import statistics
    from hwprof.analysis.owners import UNATTRIBUTED, WHOLE

    enough = (
        ~pl.col("path").is_in([UNATTRIBUTED, WHOLE])
        & (pl.col("share") >= SMALLEST_SHARE)
        & (pl.col("iterations") >= FEWEST)
    )
    known = layers.filter(enough & (pl.col("time_median_ns") > 0)).select(
        "path", error=statistics.median_error("time_mad_ns", "iterations") / pl.col("time_median_ns")
    )
    rows = known.drop_nulls().sort("error", "path", descending=[True, False]).head(1).rows()
    return Worst(rows[0][1], rows[0][0]) if rows else None
