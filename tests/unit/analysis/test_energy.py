from __future__ import annotations

import math

import polars as pl
import pytest

from hwprof.analysis import energy
from hwprof.analysis.energy import EFFICIENCY_SCHEMA, SCHEMA, meters_of, with_efficiency
from tests.support.small_tables import MS, series, spans

# 10 W until 100 ms, then 30 W; read every 10 ms.
METER = series([(at * MS, 0.010 * min(at, 100) + 0.030 * max(at - 100, 0)) for at in range(0, 301, 10)])


def energy_table(table: pl.DataFrame, readings: pl.DataFrame, iterations: tuple[int, ...]) -> pl.DataFrame:
    """Of a meter that is refreshed without end: no reading is old."""
    return energy.energy_table(meters_of(readings, {"package-0": 1e-9}), table, iterations)


def by_chance(watts: float, windows: int, seconds: float) -> float:
    """Half of the 95% interval of edges that may lie anywhere in so many seconds."""
    return 1.959964 * watts * seconds * math.sqrt(2 * windows / 12)


def test_joules_by_interpolation_with_error_and_idle_baseline() -> None:
    table = spans(
        [
            (0, None, -1, "region", "idle", 15 * MS, 95 * MS),
            (1, None, 0, "iteration", "iteration 0", 100 * MS, 200 * MS),
            (2, 1, 0, "stage", "inference", 115 * MS, 195 * MS),
            (3, None, 1, "stage", "inference", 205 * MS, 225 * MS),
        ]
    )
    found = energy_table(table, METER, (0, 1))
    assert found.schema == pl.Schema(SCHEMA)
    inference = found.row(by_predicate=pl.col("stage") == "inference", named=True)
    assert inference["zone"] == "package-0"
    assert inference["windows"] == 2
    assert inference["seconds"] == pytest.approx(0.100)
    assert inference["joules"] == pytest.approx(3.0)
    assert inference["watts"] == pytest.approx(30.0)
    assert inference["idle_watts"] == pytest.approx(10.0)
    assert inference["joules_above_idle"] == pytest.approx(2.0)
    assert inference["joules_per_iteration"] == pytest.approx(1.5)
    from_idle = 2 * 2 * (30 - 10) * 0.010 / 6  # none to the rest of the iteration; but what is around it may be idle
    error = (by_chance(30.0, 2, 0.010) ** 2 + from_idle**2) ** 0.5
    assert inference["joules_error"] == pytest.approx(error)
    assert inference["watts_error"] == pytest.approx(error / 0.1)
    assert inference["idle_error"] == pytest.approx(by_chance(10.0, 1, 0.010) / 0.08)
    assert inference["above_idle_error"] == pytest.approx((error**2 + (inference["idle_error"] * 0.1) ** 2) ** 0.5)
    assert found["stage"].to_list() == ["iteration", "inference"]


def test_an_idle_power_that_is_the_power_leaves_nothing() -> None:
    """Sums of doubles leave 1e-16, of either sign."""
    table = spans(
        [
            (0, None, -1, "region", "idle", 15 * MS, 95 * MS),
            (1, None, 0, "stage", "inference", 101 * MS, 195 * MS),
        ]
    )
    steady = series([(at * MS, 0.041 * at) for at in range(0, 301, 7)])
    found = energy_table(table, steady, (0,))
    assert found["joules"].item() == pytest.approx(0.041 * 94)
    assert found["joules_above_idle"].item() == 0.0


def test_a_window_that_the_readings_do_not_cover_is_left_out() -> None:
    table = spans(
        [(0, None, 0, "stage", "inference", 100 * MS, 150 * MS), (1, None, 1, "stage", "inference", 290 * MS, 301 * MS)]
    )
    found = energy_table(table, METER, (0, 1))
    assert found["windows"].to_list() == [1]
    assert found["joules"].to_list() == pytest.approx([1.5])
    assert found["idle_watts"].to_list() == [None]


def test_a_reading_without_a_value_is_none() -> None:
    table = spans([(0, None, 0, "stage", "inference", 115 * MS, 195 * MS)])
    holed = METER.with_columns(value=pl.when(pl.col("time_ns") != 190 * MS).then("value"))
    assert energy_table(table, holed, (0,)).equals(
        energy_table(table, METER.filter(holed["value"].is_not_null()), (0,))
    )
    assert energy_table(table, holed, (0,))["joules"].to_list() == pytest.approx([2.4])


def test_fast_readings_are_no_better_than_the_meter() -> None:
    fast = series([(at * MS // 10, 0.001 * at) for at in range(2001)])
    table = spans([(0, None, 0, "stage", "inference", 0, 100 * MS)])
    found = energy.energy_table(meters_of(fast, {}), table, (0,))
    chance = by_chance(10.0, 1, (0.001**2 + 0.0001**2) ** 0.5)
    from_nothing = 2 * 10.0 * (0.001 / 8 + 0.0001 / 6)  # nobody knows the power between two iterations
    assert found["joules_error"].to_list() == pytest.approx([(chance**2 + from_nothing**2) ** 0.5])


def test_where_the_power_steps_interpolation_takes_a_part_of_it() -> None:
    """10 W, and 30 W for 100 of 200 ms, by readings of 10 ms; the iteration's mean is 20 W, the idle power 10 W."""
    table = spans(
        [
            (0, None, 0, "iteration", "iteration 0", 10 * MS, 190 * MS),
            (1, 0, 0, "stage", "inference", 100 * MS, 190 * MS),
            (2, None, -1, "region", "idle", 15 * MS, 95 * MS),
        ]
    )
    found = energy_table(table, METER, (0,)).row(by_predicate=pl.col("stage") == "inference", named=True)
    assert found["joules"] == pytest.approx(2.7)
    step = 30 - 10
    one_sided = 2 * step * 0.010 / 6
    assert found["joules_error"] == pytest.approx((by_chance(30.0, 1, 0.010) ** 2 + one_sided**2) ** 0.5)


def test_an_edge_on_a_reading_is_that_reading() -> None:
    found = energy_table(spans([(0, None, 0, "stage", "load", 0, 300 * MS)]), METER, (0,))
    assert found["joules"].to_list() == pytest.approx([7.0])


def test_two_readings_are_enough() -> None:
    found = energy_table(spans([(0, None, 0, "stage", "load", 0, 10 * MS)]), METER.head(2), (0,))
    assert found["joules"].to_list() == pytest.approx([0.1])


def test_a_stage_that_an_iteration_has_twice_counts_once_in_its_mean() -> None:
    twice = [(0, None, 0, "stage", "nms", 0, 10 * MS), (1, None, 0, "stage", "nms", 20 * MS, 40 * MS)]
    found = energy_table(spans([*twice, (2, None, 1, "stage", "nms", 50 * MS, 60 * MS)]), METER, (0, 1))
    assert found["windows"].to_list() == [3]
    assert found["joules_per_iteration"].to_list() == pytest.approx([0.4 / 2])


@pytest.mark.parametrize("meter", [METER.clear(), METER.head(1), series([(0, 1.0), (MS, 2.0)], "memory/rss", "B")])
def test_empty_without_readings(meter: pl.DataFrame) -> None:
    found = energy_table(spans([(0, None, 0, "stage", "load", 0, MS)]), meter, (0,))
    assert found.is_empty()
    assert found.schema == pl.Schema(SCHEMA)


def test_what_a_joule_does() -> None:
    """10 W for 50 ms, of which the inference has 40: 0.5 and 0.4 J for two images of 1 GMAC each."""
    table = spans(
        [
            (0, None, 0, "iteration", "iteration 0", 0, 50 * MS),
            (1, 0, 0, "stage", "load", 0, 10 * MS),
            (2, 0, 0, "stage", "inference", 10 * MS, 50 * MS),
        ]
    )
    energies = energy_table(table, METER, (0,))
    found = with_efficiency(energies, images=2, macs=2_000_000_000)
    columns = ["stage", *EFFICIENCY_SCHEMA]
    assert {stage: pytest.approx(rest) for stage, *rest in found.select(columns).iter_rows()} == {
        "iteration": [4.0, None],
        "load": [None, None],
        "inference": [5.0, 10.0],
    }
    unknown = with_efficiency(energies, images=None, macs=None)
    assert unknown.select(*EFFICIENCY_SCHEMA).null_count().row(0) == (3, 3)
    assert with_efficiency(energies.clear(), images=2, macs=1).height == 0


def test_no_joules_are_no_efficiency() -> None:
    still = series([(0, 1.0), (10 * MS, 1.0), (20 * MS, 1.0)])
    energies = energy_table(spans([(0, None, 0, "stage", "inference", 0, 20 * MS)]), still, (0,))
    found = with_efficiency(energies, images=1, macs=1)
    assert found.select(*EFFICIENCY_SCHEMA).row(0) == (None, None)


@pytest.mark.parametrize("period_ms", [20, 100, 400])
def test_windows_that_follow_one_another_are_as_good_as_one(period_ms: int) -> None:
    """Twenty iterations of 100 ms, 1 ms apart, whose power steps in their midst, and a meter that is read seldom: the
    error is that of the two edges around all of them, and holds."""
    lasted = 50 * MS
    powers = [(25.0 if half % 2 else 75.0) for half in range(60)]

    def joules(at_ns: int) -> float:
        whole, part = divmod(at_ns, lasted)
        return (sum(powers[:whole]) * lasted + powers[whole] * part) / 1e9

    begin = 307 * MS
    rows: list[tuple[int, int | None, int, str, str, int, int]] = [
        (n, None, n, "iteration", f"iteration {n}", begin + 100 * n * MS, begin + (100 * n + 99) * MS)
        for n in range(20)
    ]
    for late in range(0, period_ms, 7):
        readings = series([(at * MS, joules(at * MS)) for at in range(late, 2_900, period_ms)])
        whole = energy_table(spans(rows), readings, tuple(range(20))).row(0, named=True)
        truth = sum(joules(end) - joules(start) for *_, start, end in rows)
        assert abs(whole["joules"] - truth) <= whole["joules_error"]
        pauses = 19 * 0.001 * whole["watts"]
        around = 2 * whole["watts"] * period_ms / 1e3 / 6
        one = by_chance(whole["watts"], 1, period_ms / 1e3)
        assert whole["joules_error"] == pytest.approx((one**2 + (around + pauses) ** 2) ** 0.5, rel=0.01)


def test_windows_far_apart_have_edges_each() -> None:
    rows: list[tuple[int, int | None, int, str, str, int, int]] = [
        (n, None, n, "iteration", f"iteration {n}", (20 + 60 * n) * MS, (50 + 60 * n) * MS) for n in range(4)
    ]
    found = energy_table(spans(rows), METER, (0, 1, 2, 3)).row(0, named=True)
    one_sided = found["watts"] * 8 * 0.010 / 6
    error = (by_chance(found["watts"], 4, 0.010) ** 2 + one_sided**2) ** 0.5
    assert found["joules_error"] == pytest.approx(error)
