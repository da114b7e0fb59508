"""The clock of processor time, from probes between iterations."""

from __future__ import annotations

import math

import polars as pl
import pytest

from hwprof.analysis.core_clock import core_clock, quarters
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


def test_its_quarters_are_in_the_order_of_time() -> None:
    values = [4.0] * 3 + [3.9] * 3 + [3.5, 3.4] + [3.3] * 3 + [3.0, 3.1, 3.2]
    probes = series(values).with_columns(time_ns=pl.Series(range(len(values))))
    found = quarters(PROBED, probes.sample(fraction=1.0, shuffle=True, seed=1))
    assert found is not None
    (first, *_), (second, *_), (third, *_), (last, low, high) = found
    assert (first, second, third) == (4.0, 3.9, 3.3) and last == pytest.approx(3.1) and 3.0 <= low < high <= 3.2
    assert quarters(PROBED, probes.head(11)) is None, "two a quarter do not tell how far they lie apart"
    assert quarters(PassRecord(name="measure"), probes) is None
