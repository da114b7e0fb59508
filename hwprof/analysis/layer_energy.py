"""Joules and watts of layers, and of modules' own code: sums over all iterations that times are from.

A layer's calls are windows of milliseconds, a meter's refreshes too: one call tells little, twenty calls of 30 ms are
0.6 s of it. What remains too vague is not told (``TOO_VAGUE``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from hwprof.analysis.attribution import overlaps, owning_spans, whole_spans, within
from hwprof.analysis.energy_windows import ABOVE_IDLE, FIGURES, Meter, above_idle
from hwprof.analysis.timeline import NONE, Timeline
from hwprof.unavailable import Unavailable

TOO_VAGUE: Final = 0.25
"""Error over value: above, a layer has no joules."""

SCHEMA: Final = pl.Schema(
    {
        "zone": pl.String(),
        "layer": pl.String(),  # an owner of ``attribution``
        **FIGURES,
        **ABOVE_IDLE,
        "share": pl.Float64(),  # of the energy of the whole that layers are parts of
        "gflop_per_joule": pl.Float64(),  # analytic, 2 a MAC; null: none, or not known
    }
)


def layer_energies(
    meters: Sequence[Meter],
    spans: pl.DataFrame,
    layers: pl.DataFrame,
    iterations: tuple[int, ...],
    idle: dict[str, tuple[float, float] | None],
) -> pl.DataFrame | Unavailable:
    """A row a zone and owner that is known well enough, most joules first, in ``SCHEMA``. ``spans``: the pass's.
    Unavailable where modules of several threads ran at a time: the machine's energy cannot be told apart then."""
    kept = spans.filter(pl.col("iteration").is_in(list(iterations)))
    wholes, _ = whole_spans(kept)
    owned = within(owning_spans(kept, layers), wholes)
    if overlaps(owned.filter("leaf", "outermost")):
        return Unavailable("layers of several threads ran at a time, and meters are the machine's")
    if owned.is_empty():
        return pl.DataFrame(schema=SCHEMA)
    windows = _windows(owned)
    macs = layers.filter("leaf").select(pl.col("macs"), layer="path")
    found = [_of(meter, windows, wholes, idle.get(meter.zone), macs) for meter in meters]
    return pl.concat([pl.DataFrame(schema=SCHEMA), *found])


def _windows(owned: pl.DataFrame) -> pl.DataFrame:
    """The stretches of time that each owner has for itself: ``layer``, ``iteration``, ``begin_ns``, ``end_ns``. Calls
    that follow each other at once, as those of a module that calls itself, are one: each edge has an error."""
    timeline = Timeline.of(owned)
    owner, begins, ends = timeline.owner[:-1], timeline.edges[:-1], timeline.edges[1:]
    real = (owner != NONE) & (ends > begins)
    whose = owned.select(pl.col("iteration", "owner").gather(pl.Series(owner[real]))).rename({"owner": "layer"})
    found = whose.with_columns(begin_ns=pl.Series(begins[real]), end_ns=pl.Series(ends[real]))
    keys = ["layer", "iteration"]
    goes_on = pl.all_horizontal(
        pl.col(*keys) == pl.col(*keys).shift(1), pl.col("begin_ns") == pl.col("end_ns").shift(1)
    )
    stretch = (~goes_on).fill_null(value=True).cum_sum().alias("stretch")
    joined = found.group_by(stretch, maintain_order=True).agg(
        pl.col(*keys).first(), pl.col("begin_ns").first(), pl.col("end_ns").last()
    )
    return joined.drop("stretch")


def _of(
    meter: Meter,
    windows: pl.DataFrame,
    wholes: pl.DataFrame,
    idle: tuple[float, float] | None,
    macs: pl.DataFrame,
) -> pl.DataFrame:
    found = meter.energies(windows, ["layer"], _step(meter.energies(windows, ["layer"])))
    whole = meter.energies(wholes.with_columns(all=pl.lit("")), ["all"])
    whole_joules = whole["joules"].sum() or None
    joules = pl.col("joules")
    return (
        found.filter(pl.col("joules_error") <= TOO_VAGUE * joules)
        .join(macs, on="layer", how="left")
        .with_columns(
            zone=pl.lit(meter.zone),
            **above_idle(idle),
            share=joules / pl.lit(whole_joules, pl.Float64),
            gflop_per_joule=pl.when(pl.col("macs") > 0).then(
                2e-9 * pl.col("macs") / pl.col("joules_per_iteration").replace(0, None)
            ),
        )
        .sort("joules", "layer", descending=[True, False])
        .select(SCHEMA.names())
        .cast(SCHEMA)
    )


def _step(found: pl.DataFrame) -> pl.Expr:
    """By how much a layer's power may differ from its neighbours': these are any layers, whose powers have a mean and a
    standard deviation, each weighted with its time."""
    watts, weight = pl.col("watts"), pl.col("seconds") / pl.col("seconds").sum()
    mean = float(found.select((watts * weight).sum()).item() or 0.0)
    variance = float(found.select(((watts - mean) ** 2 * weight).sum()).item() or 0.0)
    return ((watts - mean) ** 2 + variance).sqrt()
