"""The operands of formulas."""

from __future__ import annotations

import polars as pl

from hwprof.analysis import summary
from hwprof.analysis.attribution import UNATTRIBUTED
from hwprof.run.schema import COUNTED_WINDOW


def test_cpu_time_is_divided_by_the_window_and_unattributed_has_none() -> None:
    owners = pl.DataFrame({"owner": ["a", UNATTRIBUTED], "macs": [1.0, 1.0]})
    times = pl.DataFrame({"owner": ["a", UNATTRIBUTED], "time_median_ns": [100.0, 10.0]})
    counted = pl.DataFrame(
        {
            "owner": ["a", "a", UNATTRIBUTED, UNATTRIBUTED],
            "event": ["task-clock", COUNTED_WINDOW] * 2,
            "value": [240.0, 120.0, 30.0, 2.0],
            "main": [120.0, None, 30.0, None],
            "workers": [120.0, None, 0.0, None],
        }
    )
    operands = summary.operands(times, times, counted, owners)
    assert operands["counted-time"].to_list() == [120.0, None]
    without = summary.operands(times, times, counted.filter(pl.col("event") != COUNTED_WINDOW), owners)
    assert without["counted-time"].to_list() == [100.0, 10.0]
