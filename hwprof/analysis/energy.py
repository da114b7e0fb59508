"""Joules and watts of the stages, from cumulative energy readings over time.

Meters refresh about every millisecond and are read at an interval of their own, so the energy at a stage's edge is
interpolated; each edge may be off by the mean power times the coarser of the two. Zones are the whole machine's, not
the process's: the idle baseline, where the run rested long enough to know it, is given beside.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from hwprof.analysis.owners import INFERENCE
from hwprof.analysis.readings import covered

ENERGY_PREFIX: Final = "energy/"
REFRESH_NS: Final = 1_000_000
"""How often energy meters refresh (RAPL: about every millisecond)."""

IDLE: Final = "idle"
WHOLE_PIPELINE: Final = "iteration"
"""As a stage: all of them, and what is between them."""

SCHEMA: Final = {
    "zone": pl.String,
    "stage": pl.String,
    "windows": pl.Int64,
    "seconds": pl.Float64,
    "joules": pl.Float64,
    "joules_error": pl.Float64,
    "watts": pl.Float64,
    "watts_error": pl.Float64,
    "idle_watts": pl.Float64,
    "joules_above_idle": pl.Float64,
    "joules_per_iteration": pl.Float64,
}

EFFICIENCY_SCHEMA: Final = pl.Schema({"images_per_joule": pl.Float64, "gflop_per_joule": pl.Float64})


def energy_table(spans: pl.DataFrame, series: pl.DataFrame, iterations: tuple[int, ...]) -> pl.DataFrame:
    """One row a zone and stage (and ``iteration``: the whole) over the given iterations, in ``SCHEMA``.

    The error is the bound 2·P·resolution, summed over the windows (relative: 2·P·resolution / E). Windows that the
    readings do not cover are left out; empty without energy series.
    """
    stages = spans.filter(pl.col("kind").is_in(["stage", "iteration"]) & pl.col("iteration").is_in(list(iterations)))
    name = pl.when(pl.col("kind") == "iteration").then(pl.lit(WHOLE_PIPELINE)).otherwise("path")
    windows = stages.sort("begin_ns").select("iteration", "begin_ns", "end_ns", stage=name)
    idle = spans.filter((pl.col("kind") == "region") & (pl.col("path") == IDLE)).select("begin_ns", "end_ns")
    meters = pl.col("name").str.starts_with(ENERGY_PREFIX) & (pl.col("unit") == "J")
    readings = series.filter(meters).drop_nulls("value")
    rows = [
        row
        for (zone,), meter in readings.sort("time_ns").partition_by("name", as_dict=True, maintain_order=True).items()
        for row in _zone(str(zone).removeprefix(ENERGY_PREFIX), meter, windows, idle)
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


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


def _zone(zone: str, meter: pl.DataFrame, windows: pl.DataFrame, idle: pl.DataFrame) -> list[dict[str, object]]:
    if meter.height < 2:
        return []
    interval_ns = meter.select(pl.col("time_ns").diff().median().cast(pl.Float64)).item()
    resolution_s = max(REFRESH_NS, interval_ns) / 1e9
    used = covered(meter, windows)
    idle_watts = _watts(covered(meter, idle))
    rows: list[dict[str, object]] = []
    for (stage,), group in used.partition_by("stage", as_dict=True, maintain_order=True).items():
        seconds, energy = float(group["seconds"].sum()), float(group["amount"].sum())
        watts = energy / seconds if seconds else None
        error = 2 * watts * resolution_s * group.height if watts is not None else None
        rows.append(
            {
                "zone": zone,
                "stage": stage,
                "windows": group.height,
                "seconds": seconds,
                "joules": energy,
                "joules_error": error,
                "watts": watts,
                "watts_error": error / seconds if error is not None else None,
                "idle_watts": idle_watts,
                "joules_above_idle": energy - idle_watts * seconds if idle_watts is not None else None,
                "joules_per_iteration": energy / group["iteration"].n_unique(),
            }
        )
    return rows


def _watts(used: pl.DataFrame) -> float | None:
    seconds = float(used["seconds"].sum())
    return float(used["amount"].sum()) / seconds if seconds else None
