"""The operands of formulas."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis import summary
from hwprof.analysis.attribution import COUNTS_SCHEMA, TIMES_SCHEMA
from hwprof.analysis.metrics import Operands, definitions, evaluate
from hwprof.analysis.owners import UNATTRIBUTED
from hwprof.run.process_events import COUNTED_WINDOW
from tests.support.synthetic_processor import synthetic_machine

CPI = next(metric for metric in definitions(None, synthetic_machine()) if metric.name == "cpi")


def counts(rows: Sequence[tuple[str, int, str, float | None]]) -> pl.DataFrame:
    """(owner, iteration, event, scaled value), half of it on the main thread."""
    return pl.DataFrame(
        [
            (
                owner,
                iteration,
                event,
                "measured",
                *3 * (0,),
                value,
                value / 2 if value is not None else None,
                None,
                1,
                1,
            )
            for owner, iteration, event, value in rows
        ],
        schema=COUNTS_SCHEMA,
        orient="row",
    )


def times(rows: list[tuple[str, int, int]]) -> pl.DataFrame:
    """(owner, iteration, time), in iterations that count."""
    rows_ = [(owner, iteration, True, 1, time_ns) for owner, iteration, time_ns in rows]
    return pl.DataFrame(rows_, schema=TIMES_SCHEMA, orient="row")


def operands(count_rows: pl.DataFrame, time_rows: pl.DataFrame) -> Operands:
    owners = pl.concat([count_rows.select("owner"), time_rows.select("owner")]).unique(maintain_order=True)
    counted = tuple(time_rows["iteration"].unique())
    static = owners.with_columns(macs=pl.lit(1.0), bytes=pl.lit(None, dtype=pl.Float64), threads=pl.lit(2.0))
    return summary.operands(summary.times(time_rows, counted), time_rows, count_rows, static, counted)


def test_cpu_time_is_divided_by_the_window_and_unattributed_has_none() -> None:
    rows = [
        ("a", 1, "task-clock", 240.0),
        ("a", 1, COUNTED_WINDOW, 120.0),
        (UNATTRIBUTED, 1, "task-clock", 30.0),
        (UNATTRIBUTED, 1, COUNTED_WINDOW, 2.0),
    ]
    spent = times([("a", 1, 100), (UNATTRIBUTED, 1, 10)])
    assert operands(counts(rows), spent).owners["counted-time"].to_list() == [120.0, None]
    assert operands(counts(rows[::2]), spent).owners["counted-time"].to_list() == [100.0, 10.0]


def test_what_was_seen_once_has_no_spread_and_what_was_alike_has_one_of_0() -> None:
    rows: list[tuple[str, int, str, float | None]] = [
        ("once", 1, "cycles", 10.0),
        ("alike", 1, "cycles", 10.0),
        ("alike", 2, "cycles", 10.0),
    ]
    rows += [("half", 1, "cycles", 10.0), ("half", 2, "cycles", None)]
    found = summary.counts(counts(rows)).select("owner", "value", "mad").rows()
    assert found == [("alike", 10.0, 0.0), ("half", 10.0, None), ("once", 10.0, None)]
    spent = summary.times(times([("once", 1, 5), ("alike", 1, 5), ("alike", 2, 5)]), (1, 2))
    spreads = spent.select("owner", "time_median_ns", "time_mad_ns", "time_std_ns", "time_min_ns").rows()
    assert spreads == [("alike", 5.0, 0.0, 0.0, 5.0), ("once", 5.0, None, None, 5.0)]


def test_parts_by_thread_have_names_of_their_own_and_absent_ones_are_not_available() -> None:
    found = operands(counts([("a", 1, "cycles", 10.0)]), times([("a", 1, 5)]))
    assert found.owners.select("cycles", "cycles@main", "cycles@workers").rows() == [(10.0, 5.0, None)]
    assert set(found.available) == {"macs", "threads", "time", "counted-time", "cycles", "cycles@main"}


def test_a_ratio_is_made_within_iterations_that_counted_both() -> None:
    """Medians over different iterations would give 100 / 40: the work differs between them."""
    rows = [("a", 1, "cycles", 20.0), ("a", 2, "cycles", 100.0), ("a", 3, "cycles", 200.0)]
    rows += [("a", 1, "instructions", 10.0), ("a", 3, "instructions", 80.0), ("a", 4, "instructions", 40.0)]
    found = evaluate(operands(counts(rows), times([("a", index, 1) for index in range(1, 5)])), [CPI])
    assert found.frame["cpi"].to_list() == [pytest.approx((20 / 10 + 200 / 80) / 2)]
    assert found.across_iterations == frozenset()


def test_what_was_never_counted_together_is_made_of_medians_and_says_so() -> None:
    rows = [("a", 1, "cycles", 20.0), ("a", 2, "cycles", 40.0), ("a", 3, "instructions", 10.0)]
    found = evaluate(operands(counts(rows), times([("a", index, 1) for index in range(1, 4)])), [CPI])
    assert found.frame["cpi"].to_list() == [3.0]
    assert found.across_iterations == {"cpi"}


def test_nothing_is_claimed_of_a_layer_that_never_counted_both_where_others_did() -> None:
    rows = [("a", 1, "cycles", 4.0), ("a", 1, "instructions", 2.0)]
    rows += [("b", 1, "cycles", 9.0), ("b", 2, "instructions", 3.0)]
    found = evaluate(operands(counts(rows), times([("a", 1, 1), ("b", 1, 1), ("b", 2, 1)])), [CPI])
    assert found.frame["cpi"].to_list() == [2.0, None]


def test_an_unknown_scaled_value_leaves_its_iteration_out() -> None:
    rows = [("a", 1, "cycles", None), ("a", 1, "instructions", 7.0)]
    rows += [("a", 2, "cycles", 6.0), ("a", 2, "instructions", 3.0)]
    found = evaluate(operands(counts(rows), times([("a", 1, 1), ("a", 2, 1)])), [CPI])
    assert found.frame["cpi"].to_list() == [2.0]


Ratio = st.floats(0.25, 4)
Work = st.floats(1, 1e9)


@given(Ratio, st.lists(Work, min_size=1, max_size=6), st.lists(Work, max_size=6))
def test_a_constant_ratio_survives_any_mix_of_event_sets(ratio: float, both: list[float], alone: list[float]) -> None:
    """However much the work of iterations differs, and whatever other sets counted of one event only."""
    rows: list[tuple[str, int, str, float | None]] = []
    for index, work in enumerate(both):
        rows += [("a", index, "cycles", ratio * work), ("a", index, "instructions", work)]
    rows += [("a", len(both) + index, "cycles", work) for index, work in enumerate(alone)]
    spent = times([("a", index, 1) for index in range(len(both) + len(alone))])
    found = evaluate(operands(counts(rows), spent), [CPI])
    assert found.frame["cpi"].to_list() == [pytest.approx(ratio)]
    assert not found.across_iterations


@given(
    st.dictionaries(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["e", "f"])),
        st.tuples(st.none() | st.floats(0, 1e12), st.integers(0, 9), st.integers(0, 9)),
    )
)
def test_counts_of_one_iteration_are_those_of_two_alike_but_for_what_two_tell(
    rows: dict[tuple[str, str], tuple[float | None, int, int]],
) -> None:
    one = counts([(owner, 0, event, value) for (owner, event), (value, _, _) in rows.items()])
    times = {"enabled_ns": [enabled for _, enabled, _ in rows.values()], "running_ns": [r for *_, r in rows.values()]}
    one = one.with_columns(pl.Series(name, values, dtype=pl.Int64) for name, values in times.items())
    two = pl.concat([one, one.with_columns(iteration=pl.lit(1, pl.Int32))])
    found, expected = summary.counts(one), summary.counts(two)
    assert found.schema == expected.schema
    assert found.drop("iterations", "mad").equals(expected.drop("iterations", "mad"))
    assert found["iterations"].to_list() == [1] * len(rows) and found["mad"].null_count() == len(rows)
