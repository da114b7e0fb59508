"""Joules and watts of the stages, from cumulative energy readings over time (``energy_windows`` has the arithmetic).

Zones are the whole machine's, not the process's: the idle baseline, where the run rested long enough to know it, is
given beside.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final

import polars as pl

from hwprof.analysis.energy_windows import ABOVE_IDLE, FIGURES, REFRESH_NS, Meter, above_idle
from hwprof.analysis.owners import INFERENCE
from hwprof.run.details import EnergyDetail

ENERGY_PREFIX: Final = "energy/"
IDLE: Final = "idle"
LEAST_INTERVALS: Final = 5
"""Of a meter's readings, in which a machine rests."""

WHOLE_PIPELINE: Final = "iteration"
"""As a stage: all of them, and what is between them."""

SCHEMA: Final = pl.Schema(
    {
        "zone": pl.String(),
        "stage": pl.String(),
        **FIGURES,
        "idle_watts": pl.Float64(),
        "idle_error": pl.Float64(),
        **ABOVE_IDLE,
    }
)

EFFICIENCY_SCHEMA: Final = pl.Schema({"images_per_joule": pl.Float64, "gflop_per_joule": pl.Float64})


def meters_read(series: pl.DataFrame, details: Iterable[EnergyDetail]) -> list[Meter]:
    """As ``meters_of``, by what those that read them say of them."""
    refresh_ns: dict[str, float] = {}
    late_ns: dict[str, float] = {}
    of_power: set[str] = set()
    for detail in details:
        refresh_ns |= {zone: ms * 1e6 for zone, ms in detail.refresh_ms.items()}
        late_ns |= {zone: ms * 1e6 for zone, ms in detail.late_ms.items()}
        of_power |= set(detail.of_power)
    return meters_of(series, refresh_ns, late_ns, of_power)


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


def idle_watts(meters: Sequence[Meter], spans: pl.DataFrame) -> dict[str, tuple[float, float] | None]:
    """Of each zone (W, with its error), while the run rested before its first iteration; None where it did not, or
    where the meter was read too seldom: what was before is in the first of its intervals, what comes in the last."""
    idle = spans.filter((pl.col("kind") == "region") & (pl.col("path") == IDLE)).select("begin_ns", "end_ns")
    lasted_ns = int((idle["end_ns"] - idle["begin_ns"]).sum())
    return {
        meter.zone: _known(meter.watts(idle)) if lasted_ns >= LEAST_INTERVALS * meter.period_ns else None
        for meter in meters
    }


def _known(power: tuple[float, float] | None) -> tuple[float, float] | None:
    """None where its error is larger than itself: it may be anything."""
    return None if power is None or power[1] > power[0] else power


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


def _zone(meter: Meter, windows: pl.DataFrame, idle: tuple[float, float] | None) -> pl.DataFrame:
    """The power at the edges of a stage steps to that of others, or to that of what is between two iterations: nobody
    knows how little that is, but the idle power."""
    around, outside = meter.watts(windows.filter(stage=WHOLE_PIPELINE)), idle or (0.0, 0.0)
    others = [pl.lit(one[0], pl.Float64) for one in (around, outside) if one is not None]
    step = pl.max_horizontal(*((pl.col("watts") - power).abs() for power in others))
    return (
        meter.energies(windows, ["stage"], step)
        .with_columns(
            zone=pl.lit(meter.zone),
            idle_watts=pl.lit(idle[0] if idle else None, pl.Float64),
            idle_error=pl.lit(idle[1] if idle else None, pl.Float64),
            **above_idle(idle),
        )
        .select(SCHEMA.names())
        .cast(SCHEMA)
    )
