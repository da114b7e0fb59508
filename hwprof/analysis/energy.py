"""Joules and watts of the stages, from cumulative energy readings over time.

Meters refresh about every millisecond and are read at an interval of their own, so the energy at a stage's edge is
interpolated; each edge may be off by the mean power times the coarser of the two. Zones are the whole machine's, not
the process's: the idle baseline, where the run rested long enough to know it, is given beside.
"""

from __future__ import annotations

from typing import Final

import polars as pl

ENERGY_PREFIX: Final = "energy/"
REFRESH_NS: Final = 1_000_000
"""How often energy meters refresh (RAPL: about every millisecond)."""

IDLE: Final = "idle"
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


def energy_table(spans: pl.DataFrame, series: pl.DataFrame, iterations: tuple[int, ...]) -> pl.DataFrame:
    """One row a zone and stage (and ``iteration``: the whole) over the given iterations, in ``SCHEMA``.

    The error is the bound 2·P·resolution, summed over the windows (relative: 2·P·resolution / E). Windows that the
    readings do not cover are left out; empty without energy series.
    """
    stages = spans.filter(pl.col("kind").is_in(["stage", "iteration"]) & pl.col("iteration").is_in(list(iterations)))
    name = pl.when(pl.col("kind") == "iteration").then(pl.lit("iteration")).otherwise("path")
    windows = stages.sort("begin_ns").select("iteration", "begin_ns", "end_ns", stage=name)
    idle = spans.filter((pl.col("kind") == "region") & (pl.col("path") == IDLE)).select("begin_ns", "end_ns")
    readings = series.filter(pl.col("name").str.starts_with(ENERGY_PREFIX) & (pl.col("unit") == "J"))
    rows = [
        row
        for (zone,), meter in readings.sort("time_ns").partition_by("name", as_dict=True, maintain_order=True).items()
        for row in _zone(str(zone).removeprefix(ENERGY_PREFIX), meter, windows, idle)
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _zone(zone: str, meter: pl.DataFrame, windows: pl.DataFrame, idle: pl.DataFrame) -> list[dict[str, object]]:
    if meter.height < 2:
        return []
    interval_ns = meter.select(pl.col("time_ns").diff().median().cast(pl.Float64)).item()
    resolution_s = max(REFRESH_NS, interval_ns) / 1e9
    used = _used(meter, windows)
    idle_watts = _watts(_used(meter, idle))
    rows: list[dict[str, object]] = []
    for (stage,), group in used.partition_by("stage", as_dict=True, maintain_order=True).items():
        seconds, energy = float(group["seconds"].sum()), float(group["joules"].sum())
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


def _used(meter: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
    """The windows inside the readings, with the seconds and joules of each."""
    first, last = meter["time_ns"][0], meter["time_ns"][-1]
    covered = windows.filter((pl.col("begin_ns") >= first) & (pl.col("end_ns") <= last))
    begin, end = (_interpolate(meter, covered[edge]) for edge in ("begin_ns", "end_ns"))
    return covered.with_columns(seconds=(pl.col("end_ns") - pl.col("begin_ns")) / 1e9, joules=end - begin)


def _interpolate(meter: pl.DataFrame, moments: pl.Series) -> pl.Series:
    """The meter's value at moments within its readings, linear between the two readings around each."""
    readings = meter.select("time_ns", "value", at_ns="time_ns").sort("at_ns")
    wanted = pl.DataFrame({"at_ns": moments, "row": range(len(moments))}, schema_overrides={"row": pl.Int64})
    around = wanted.sort("at_ns").join_asof(readings, on="at_ns", strategy="backward")
    around = around.join_asof(readings, on="at_ns", strategy="forward", suffix="_after")
    part = (pl.col("at_ns") - pl.col("time_ns")) / (pl.col("time_ns_after") - pl.col("time_ns"))
    value = pl.col("value") + (pl.col("value_after") - pl.col("value")) * pl.when(part.is_finite()).then(
        part
    ).otherwise(0)
    return around.select("row", joules=value).sort("row")["joules"]


def _watts(used: pl.DataFrame) -> float | None:
    seconds = float(used["seconds"].sum())
    return float(used["joules"].sum()) / seconds if seconds else None
