"""DRAM traffic of the whole machine in the windows of layers and stages."""

from __future__ import annotations

import itertools

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis.metrics import Operands, evaluate
from hwprof.analysis.owners import WHOLE
from hwprof.analysis.readings import covered
from hwprof.analysis.uncore import OPEN, SCHEMA, by_owner, definitions, operands, traffic
from tests.support.small_tables import MS, layers, series, spans

READS, WRITES, TOTAL = (f"uncore/dram-{what}" for what in ("read", "write", "total"))


def meter(points: list[tuple[int, float]], name: str = READS) -> pl.DataFrame:
    return series(points, name, "B")


def windows(*rows: tuple[str, int, int]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["owner", "begin_ns", "end_ns"], orient="row")


# 2 GB/s, read every 10 ms
STEADY = meter([(at * MS, 2e6 * at) for at in range(0, 501, 10)])


def test_a_long_window_has_a_rate_and_a_bound() -> None:
    found = traffic(windows(("a", 105 * MS, 305 * MS)), STEADY)
    assert found.schema == pl.Schema(SCHEMA)
    row = found.row(0, named=True)
    assert row["bytes"] == pytest.approx(0.4e9)
    assert row["gbytes_per_s"] == pytest.approx(2.0)
    assert row["bytes_error"] == pytest.approx(2 * 2e6 * 10)  # ten milliseconds' worth at either edge
    assert row["gbytes_per_s_error"] == pytest.approx(0.04e9 / 0.2 / 1e9)


def test_what_eight_intervals_tell_is_the_limit_at_steady_traffic() -> None:
    edge = 100 * MS + 1
    found = traffic(windows(("long", edge, edge + 80 * MS), ("short", edge, edge + 79 * MS)), STEADY)
    rates = dict(found.select("owner", "gbytes_per_s").iter_rows())
    assert rates == {"long": pytest.approx(2.0), "short": None}
    assert OPEN == 2 * 10 / 80


def test_a_quiet_window_between_busy_ones_is_not_told_by_its_length() -> None:
    """200 ms without traffic, but what moved around its edges might be its own."""
    busy = meter([(at * MS, 2e6 * (min(at, 100) + max(at - 300, 0))) for at in range(0, 501, 10)])
    found = traffic(windows(("a", 95 * MS, 305 * MS), ("b", 100 * MS, 300 * MS)), busy)
    assert dict(found.select("owner", "gbytes_per_s").iter_rows()) == {"a": None, "b": 0.0}


def test_windows_of_one_owner_are_summed_and_those_outside_left_out() -> None:
    found = traffic(windows(("a", 100 * MS, 200 * MS), ("a", 300 * MS, 400 * MS), ("a", 450 * MS, 501 * MS)), STEADY)
    assert found.select("windows", "seconds").rows() == [(2, pytest.approx(0.2))]


@pytest.mark.parametrize("readings", [STEADY.clear(), STEADY.head(1), series([(0, 1.0), (MS, 2.0)], "memory/rss", "B")])
def test_without_readings_there_is_nothing(readings: pl.DataFrame) -> None:
    found = traffic(windows(("a", 0, MS)), readings)
    assert found.is_empty() and found.schema == pl.Schema(SCHEMA)
    assert operands(found).columns == ["owner"]


def test_two_readings_are_enough() -> None:
    found = traffic(windows(("a", 0, 100 * MS)), meter([(0, 0.0), (100 * MS, 2e8)]))
    assert found.select("bytes", "gbytes_per_s").rows() == [(2e8, pytest.approx(2.0))]


def table_of(rates: dict[str, tuple[float, float]]) -> pl.DataFrame:
    """A second of an owner: GB and their error by series."""
    rows = [
        ("a", name, 1.0, 1e9 * moved, 1e9 * error, moved if error <= OPEN * moved else None)
        for name, (moved, error) in rates.items()
    ]
    names = ["owner", "series", "seconds", "bytes", "bytes_error", "gbytes_per_s"]
    return pl.DataFrame(rows, schema=names, orient="row")


def test_a_total_that_was_counted_is_taken_as_it_is() -> None:
    found = table_of({READS: (1, 0), WRITES: (2, 0), TOTAL: (4, 0)})
    assert operands(found)[TOTAL].to_list() == [4.0]
    assert operands(found.head(2))[TOTAL].to_list() == [3.0]
    assert TOTAL not in operands(found.head(1)).columns


@pytest.mark.parametrize(("written", "error", "total"), [(0.01, 0.1, 2.01), (0.01, 0.5, None), (1, 0.3, 3.0)])
def test_a_total_is_resolved_by_what_is_open_of_it(written: float, error: float, total: float | None) -> None:
    """Few writes are not told beside many reads, but the sum is."""
    (row,) = operands(table_of({READS: (2, 0.1), WRITES: (written, error)})).iter_rows(named=True)
    assert row[WRITES] is None
    assert row[TOTAL] == (None if total is None else pytest.approx(total))


@given(
    st.lists(st.tuples(st.integers(1, 50), st.floats(0, 1e6)), min_size=3, max_size=30),
    st.integers(1, 20),
    st.data(),
)
def test_the_true_amount_is_within_the_bound(steps: list[tuple[int, float]], every: int, data: st.DataObject) -> None:
    """Whatever happens between the readings, as long as the meter only grows."""
    times = [0, *itertools.accumulate(step for step, _ in steps)]
    values = [0.0, *itertools.accumulate(growth for _, growth in steps)]
    truth = dict(zip(times, values, strict=True))
    kept = [*range(0, len(times) - 1, every), len(times) - 1]
    begin, end = sorted(data.draw(st.tuples(st.sampled_from(times), st.sampled_from(times))))
    readings = meter([(times[index], values[index]) for index in kept])
    found = covered(readings, windows(("a", begin, end))).row(0, named=True)
    assert abs(found["amount"] - (truth[end] - truth[begin])) <= found["slack"] * (1 + 1e-9) + 1e-6


def test_layers_types_stages_and_the_metrics() -> None:
    table = spans(
        [
            (0, None, 0, "iteration", "iteration 0", 0, 400 * MS),
            (1, 0, 0, "stage", "inference", 10 * MS, 390 * MS),
            (2, 1, 0, "layer", "a", 20 * MS, 180 * MS),
            (3, 1, 0, "layer", "b", 181 * MS, 199 * MS),
            (4, 1, 1, "layer", "b", 200 * MS, 380 * MS),
        ]
    )
    model = layers([("a", "Conv2d", True), ("b", "SiLU", True)])
    total = meter([(at * MS, 3e6 * at) for at in range(0, 501, 10)], "uncore/dram-total")
    found = by_owner(table, model, pl.concat([STEADY, total]), (0,))
    rates = {row["owner"]: row["gbytes_per_s"] for row in found.layers.iter_rows(named=True) if row["series"] == READS}
    assert rates == {"a": pytest.approx(2.0), "b": None, WHOLE: pytest.approx(2.0)}
    assert set(found.layer_types["owner"]) == {"Conv2d", "SiLU"}
    assert set(found.stages["owner"]) == {"inference"}
    known = operands(found.layers)
    metrics = evaluate(Operands(known, known.with_columns(iteration=1).clear()), definitions()).frame
    values = {row.pop("owner"): row for row in metrics.iter_rows(named=True)}
    assert values["a"] == {
        "uncore_dram_read_gbytes": pytest.approx(2.0),
        "uncore_dram_write_gbytes": None,
        "uncore_dram_gbytes": pytest.approx(3.0),
    }
