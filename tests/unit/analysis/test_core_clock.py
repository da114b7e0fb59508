"""The clock of processor time, from probes between iterations."""

from __future__ import annotations

import math

import polars as pl
import pytest

from hwprof.analysis.core_clock import core_clock
from hwprof.run.details import CoreClockDetail, as_json
from hwprof.run.manifest import CollectorRecord, PassRecord

PROBED = PassRecord(
    name="trace",
    main_tid=1,
    collectors=[
        CollectorRecord(
            name="core_clock",
            state="ran",
            detail=as_json(CoreClockDetail(series="core-clock", probes=3, chains_apart=0.0, reference_ghz=2.5)),
        )
    ],
)


def series(values: list[float], name: str = "core-clock") -> pl.DataFrame:
    return pl.DataFrame(
        {"name": [name] * len(values), "value": values}, schema={"name": pl.String, "value": pl.Float64}
    )


def test_it_is_the_median_and_nine_in_ten_lie_within_its_error() -> None:
    values = [3.9 + 0.01 * number for number in range(21)]
    clock = core_clock(PROBED, pl.concat([series(values), series([99.0] * 50, "another")]))
    assert clock is not None and clock.probed
    assert clock.ghz == pytest.approx(4.0)
    assert clock.error == pytest.approx(0.09 / 4.0)


@pytest.mark.parametrize("values", [[], [0.0, 0.0, 0.0], [3.9, 4.0], [math.inf, -math.inf, math.nan]])
def test_without_enough_probes_there_is_none(values: list[float]) -> None:
    assert core_clock(PROBED, series(values)) is None


def test_another_collectors_series_of_that_name_is_not_it() -> None:
    assert core_clock(PassRecord(name="trace", main_tid=1), series([4.0])) is None
