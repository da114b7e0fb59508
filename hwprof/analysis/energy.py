"""Joules and watts of the stages, from cumulative energy readings over time (``energy_windows`` has the arithmetic).

Zones are the whole machine's, not the process's: the idle baseline, where the run rested long enough to know it, is
given beside.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Final

import polars as pl

from hwprof.analysis.energy_windows import FIGURES, REFRESH_NS, Meter, above_idle
from hwprof.analysis.owners import INFERENCE

ENERGY_PREFIX: Final = "energy/"
IDLE: Final = "idle"
WHOLE_PIPELINE: Final = "iteration"
"""As a stage: all of them, and what is between them."""

SCHEMA: Final = pl.Schema(
    {
        "zone": pl.String(),
        "stage": pl.String(),
        **FIGURES,
        "idle_watts": pl.Float64(),
        "joules_above_idle": pl.Float64(),
    }
)

EFFICIENCY_SCHEMA: Final = pl.Schema({"images_per_joule": pl.Float64, "gflop_per_joule": pl.Float64})


def meters_of(
    series: pl.DataFrame,
    refresh_ns: Mapping[str, float],
    late_ns: Mapping[str, float] | None = None,
    of_power: Container[str] = (),
) -> list[Meter]:
    """The energy meters among rows of ``series``, by zone; ``refresh_ns``: of zones, where somebody has looked;
    ``late_ns``: by how much the times of their readings may be off, where that is known to be more than nothing;
    ``of_power``: zones whose readings were watts at moments."""
    chosen = pl.col("name").str.starts_with(ENERGY_PREFIX) & (pl.col("unit") == "J")
    readings = series.filter(chosen).drop_nulls("value").sort("time_ns")
    found = readings.partition_by("name", as_dict=True, maintain_order=True)
    named = ((str(name).removeprefix(ENERGY_PREFIX), rows) for (name,), rows in found.items())
    late = late_ns or {}
    meters = (
        Meter.of(zone, rows, refresh_ns.get(zone, REFRESH_NS), late.get(zone, 0.0), of_power=zone in of_power)
        for zone, rows in named
    )
    return [meter for meter in meters if meter is not None]


def idle_watts(meters: Sequence[Meter], spans: pl.DataFrame) -> dict[str, float | None]:
    """Of each zone, while the run rested before its first iteration; None where it did not."""
    idle = spans.filter((pl.col("kind") == "region") & (pl.col("path") == IDLE)).select("begin_ns", "end_ns")
    return {meter.zone: meter.watts(idle) for meter in meters}


def energy_table(meters: Sequence[Meter], spans: pl.DataFrame, iterations: tuple[int, ...]) -> pl.DataFrame:
    """One row a zone and stage (and ``iteration``: the whole) over the given iterations, in ``SCHEMA``. Windows that
    the readings do not cover are left out; empty without meters."""
    stages = spans.filter(pl.col("kind").is_in(["stage", "iteration"]) & pl.col("iteration").is_in(list(iterations)))
    name = pl.when(pl.col("kind") == "iteration").then(pl.lit(WHOLE_PIPELINE)).otherwise("path")
    windows = stages.sort("begin_ns").select("iteration", "begin_ns", "end_ns", stage=name)
    idle = idle_watts(meters, spans)
    found = [_zone(meter, windows, idle[meter.zone]) for meter in meters]
    return pl.concat([pl.DataFrame(schema=SCHEMA), *found])


CALLS: Final = pl.Schema(
    {
        "begin_ns": pl.Int64(),
        "stage": pl.String(),
        "iteration": pl.Int32(),
        "zone": pl.String(),
        "seconds": pl.Float64(),
        "joules": pl.Float64(),
        "joules_error": pl.Float64(),
    }
)


def calls(meters: Sequence[Meter], spans: pl.DataFrame, iterations: tuple[int, ...]) -> pl.DataFrame:
    """One row a call of a stage and zone, in order of time, in ``CALLS``."""
    stages = spans.filter((pl.col("kind") == "stage") & pl.col("iteration").is_in(list(iterations)))
    windows = stages.sort("begin_ns").select("iteration", "begin_ns", "end_ns", stage="path")
    numbered = windows.with_columns(call=pl.int_range(pl.len()).cast(pl.String))
    found = [
        meter.energies(numbered, ["call"]).join(numbered, on="call").with_columns(zone=pl.lit(meter.zone))
        for meter in meters
    ]
    rows = [one.select(CALLS.names()).cast(CALLS) for one in found]
    return pl.concat([pl.DataFrame(schema=CALLS), *rows]).sort("begin_ns", "stage", "zone")


def with_efficiency(energies: pl.DataFrame, images: int | None, macs: int | None) -> pl.DataFrame:
    """The ``energy_table`` with ``EFFICIENCY_SCHEMA``: what a joule of the zone does, idle power included. ``images``
    and analytic ``macs``: of an iteration; None: not known.

    images / J: of the inference, and of the whole pipeline. GFLOP / J: 2 · MACs / 10⁹ / J, of the inference. Their
    relative error is that of the joules.
    """
    inference, per_iteration = pl.col("stage") == INFERENCE, pl.when(pl.col("joules") > 0).then("joules_per_iteration")
    return energies.with_columns(
        images_per_joule=pl.when(inference | (pl.col("stage") == WHOLE_PIPELINE)).then(pl.lit(images) / per_iteration),
        gflop_per_joule=pl.when(inference & (pl.lit(macs) > 0)).then(pl.lit(macs) * 2 / 1e9 / per_iteration),
    ).cast(EFFICIENCY_SCHEMA)


def _zone(meter: Meter, windows: pl.DataFrame, idle: float | None) -> pl.DataFrame:
    around = meter.watts(windows.filter(stage=WHOLE_PIPELINE))
    return (
        meter.energies(windows, ["stage"], (pl.col("watts") - pl.lit(around, pl.Float64)).abs())
        .with_columns(
            zone=pl.lit(meter.zone),
            idle_watts=pl.lit(idle, pl.Float64),
            joules_above_idle=above_idle(idle),
        )
        .select(SCHEMA.names())
        .cast(SCHEMA)
    )
