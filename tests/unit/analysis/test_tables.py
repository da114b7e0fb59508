"""Layers, layer types, stages, operators: whole tables computed by hand."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis import summary
from hwprof.analysis.attribution import TIMES_SCHEMA, attribute
from hwprof.analysis.iterations import select
from hwprof.analysis.layer_types import layer_type_table
from hwprof.analysis.layers import layer_table, sum_where_known
from hwprof.analysis.metrics import definitions
from hwprof.analysis.operators import coverage, operator_calls, operator_table
from hwprof.analysis.owners import UNATTRIBUTED, WHOLE
from hwprof.analysis.stages import stage_table
from tests.support.small_tables import Example, counts, record, spans
from tests.support.synthetic_processor import synthetic_machine

DEFINITIONS = definitions(None, synthetic_machine())


def test_layers_in_execution_order_then_the_rest_and_the_whole() -> None:
    example = Example()
    attribution = attribute(example.spans, example.counts, example.layers, example.record)
    found = layer_table(example.layers, attribution, DEFINITIONS, 2)
    columns = ("owner", "type", "macs", "calls_per_iteration", "iterations", "time_median_ns", "time_max_ns")
    assert found.rows.select(columns).rows() == [
        ("a", "Conv2d", 1000, 2.0, 1, 31.0, 31),
        ("b", "SiLU", 1000, 1.0, 1, 30.0, 30),
        (UNATTRIBUTED, None, None, 1.0, 1, 40.0, 40),
        (WHOLE, None, 2000, 1.0, 1, 101.0, 101),
    ]
    shares = found.rows["share"].to_list()
    assert shares == pytest.approx([31 / 101, 30 / 101, 40 / 101, 1.0])
    cycles = found.counters.filter(pl.col("event") == "cycles").select(
        "owner", "value", "main", "workers", "iterations"
    )
    assert cycles.sort("owner").rows() == [
        ("a", 334.0, 304.0, 30.0, 1),
        ("b", 35.0, 32.0, 3.0, 1),
        (UNATTRIBUTED, 183.0, 166.0, 17.0, 1),
        (WHOLE, 552.0, 502.0, 50.0, 1),
    ]
    # cycles of iteration 2 over instructions of iteration 3: no event set has both, and the metric says so
    assert found.across_iterations == {"cpi", "ipc", "cpi@main", "cpi@workers", "ipc@main", "ipc@workers"}
    assert found.metrics["cpi"].to_list() == pytest.approx([334 / 336, 35 / 36, 183 / 181, 552 / 553])
    assert found.metrics["gflops"].to_list()[0] == pytest.approx(2000 / 31)
    assert "cache-misses" not in found.operands


def test_shares_are_in_the_order_of_the_times_and_add_up() -> None:
    """By the sums over iterations b would have more than half of the time, for one that took long."""
    rows = [("a", 20, 20, 20, 20, 20), ("b", 10, 10, 10, 10, 190), (UNATTRIBUTED, 2, 2, 2, 2, 2)]
    times = [(owner, index, False, 1, ns) for owner, *each in rows for index, ns in enumerate(each)]
    times += [(WHOLE, index, False, 1, sum(row[index + 1] for row in rows)) for index in range(5)]  # type: ignore[misc]
    example = Example()
    found = attribute(example.spans, example.counts, example.layers, example.record)
    iterations = replace(found.iterations, timed=tuple(range(5)), counted=())
    frame = pl.DataFrame(times, schema=TIMES_SCHEMA, orient="row")
    attribution = replace(found, times=frame, counts=found.counts.clear(), iterations=iterations)
    layers = layer_table(example.layers, attribution, DEFINITIONS, 2).rows
    assert dict(layers.select("owner", "share").iter_rows()) == pytest.approx(
        {"a": 20 / 32, "b": 10 / 32, UNATTRIBUTED: 2 / 32, WHOLE: 1.0}
    )
    types = layer_type_table(example.layers, attribution, DEFINITIONS, 2).rows
    assert types["owner"].to_list() == ["Conv2d", "SiLU", UNATTRIBUTED]
    assert types["share"].to_list() == pytest.approx([20 / 32, 10 / 32, 2 / 32])


def test_a_type_has_the_share_of_its_layers() -> None:
    """The median of their sum is 40 of 50, for what each layer has 10 of 30."""
    rows = [("a", 10, 10, 30), ("b", 30, 10, 10), (UNATTRIBUTED, 10, 10, 10)]
    times = [(owner, index, False, 1, ns) for owner, *each in rows for index, ns in enumerate(each)]
    example = Example()
    found = attribute(example.spans, example.counts, example.layers, example.record)
    iterations = replace(found.iterations, timed=tuple(range(3)), counted=())
    frame = pl.DataFrame(times, schema=TIMES_SCHEMA, orient="row")
    attribution = replace(found, times=frame, counts=found.counts.clear(), iterations=iterations)
    for known in (example.layers, example.layers.with_columns(type=pl.lit("Linear"))):
        layers = dict(layer_table(known, attribution, DEFINITIONS, 2).rows.select("owner", "share").iter_rows())
        types = dict(layer_type_table(known, attribution, DEFINITIONS, 2).rows.select("owner", "share").iter_rows())
        assert sum(types.values()) == pytest.approx(1)
        assert types[UNATTRIBUTED] == layers[UNATTRIBUTED]
        assert "Linear" in types or types["Conv2d"] == layers["a"]


def test_a_layer_of_few_iterations_has_its_part_of_all() -> None:
    """Called in one iteration of four, for 40: as much as one that takes 10 in each."""
    times = [("a", index, False, 1, 10) for index in range(4)] + [("b", 2, False, 1, 40)]
    times += [(WHOLE, index, False, 1, 50 if index == 2 else 10) for index in range(4)]
    example = Example()
    found = attribute(example.spans, example.counts, example.layers, example.record)
    iterations = replace(found.iterations, timed=tuple(range(4)), counted=())
    frame = pl.DataFrame(times, schema=TIMES_SCHEMA, orient="row")
    attribution = replace(found, times=frame, counts=found.counts.clear(), iterations=iterations)
    layers = layer_table(example.layers, attribution, DEFINITIONS, 2).rows
    assert layers.filter(pl.col("owner").is_in(["a", "b"]))["share"].to_list() == [0.5, 0.5]


def test_a_leaf_that_was_never_called_keeps_its_row() -> None:
    example = Example()
    attribution = attribute(example.spans.filter(pl.col("path") != "b"), example.counts, example.layers, example.record)
    row = layer_table(example.layers, attribution, DEFINITIONS, 2).rows.row(1, named=True)
    assert row["owner"] == "b"
    assert row["calls_per_iteration"] is None and row["time_median_ns"] is None and row["share"] is None


def test_what_the_one_forward_did_not_call_has_no_figures_by_arithmetic() -> None:
    """Nor has what it is a part of: it would be slow by the time, and not by the work."""
    example = Example()
    attribution = attribute(example.spans, example.counts, example.layers, example.record)
    seldom = example.layers.with_columns(
        type=pl.lit("Linear"), **{name: pl.col(name) * (pl.col("path") == "a") for name in ("macs", "bytes", "calls")}
    )
    for found, owners in ((layer_table, ("b", WHOLE)), (layer_type_table, ("Linear",))):
        figures = found(seldom, attribution, DEFINITIONS, 2)
        work = {row[0]: row[1:] for row in figures.rows.select("owner", "macs", "bytes").rows()}
        rates = {row[0]: row[1:] for row in figures.metrics.select("owner", "gflops", "gbytes").rows()}
        assert all(work[owner] == rates[owner] == (None, None) for owner in owners)
    assert layer_table(seldom, attribution, DEFINITIONS, 2).rows.row(0, named=True)["macs"] == 1000


@pytest.mark.parametrize(("column", "rate"), [("macs", "gflops"), ("bytes", "gbytes")])
def test_a_layer_of_unknown_work_has_no_rate_and_its_type_none_either(column: str, rate: str) -> None:
    """What torch's counter does not know, and a layer whose tensors nobody saw."""
    example = Example()
    attribution = attribute(example.spans, example.counts, example.layers, example.record)
    mixed = example.layers.with_columns(pl.lit("LSTM").alias("type"), pl.col(column) * (pl.col("path") == "a"))
    layers = layer_table(mixed, attribution, DEFINITIONS, 2).metrics
    assert layers[rate].to_list()[0] > 0
    assert layers[rate].to_list()[1] is None
    types = layer_type_table(mixed, attribution, DEFINITIONS, 2)
    assert (types.metrics[rate].to_list()[0], types.rows[column].to_list()[0]) == (None, None)


@pytest.mark.parametrize("unknown", ["b", "around"])
def test_the_whole_has_no_rate_where_a_part_of_its_products_is_not_known(unknown: str) -> None:
    """A layer that torch counts no products of, or a module that has such beside its layers: 0 MACs would do."""
    example = Example()
    attribution = attribute(example.spans, example.counts, example.layers, example.record)
    around = example.layers.head(1).with_columns(path=pl.lit("around"), leaf=False, macs=pl.lit(0, pl.Int64))
    layers = pl.concat([example.layers, around])
    macs = pl.when(pl.col("path") != "b").then(pl.col("macs")).otherwise(0)

    def rates(table: pl.DataFrame) -> dict[str, float | None]:
        return dict(layer_table(table, attribution, DEFINITIONS, 2).metrics.select("owner", "gflops").iter_rows())

    assert (rates(layers.with_columns(macs))[WHOLE] or 0) > 0, "what has no products takes no part"
    found = rates(layers.with_columns(pl.when(pl.col("path") != unknown).then(macs).alias("macs")))
    assert found[WHOLE] is None and (found["a"] or 0) > 0


def test_calls_are_those_of_all_timed_iterations() -> None:
    frame = pl.DataFrame({"owner": ["a"] * 3, "iteration": [1, 3, 4], "calls": [1, 1, 7], "time_ns": [10, 12, 99]})
    row = summary.times(frame, (0, 1, 2, 3)).row(0, named=True)
    assert (row["calls_per_iteration"], row["iterations"], row["time_median_ns"]) == (0.5, 2, 11.0)


def test_types_sum_their_layers_in_each_iteration() -> None:
    example = Example()
    same = example.layers.with_columns(type=pl.lit("Conv2d"))
    attribution = attribute(example.spans, example.counts, same, example.record)
    found = layer_type_table(same, attribution, DEFINITIONS, 2)
    columns = ("owner", "layers", "macs", "bytes", "calls_per_iteration", "time_median_ns")
    assert found.rows.select(columns).rows() == [
        ("Conv2d", 2, 2000, 1000, 3.0, 61.0),
        (UNATTRIBUTED, None, None, None, 1.0, 40.0),
    ]
    assert sum(found.rows["share"]) == pytest.approx(1.0)
    cycles = found.counters.filter((pl.col("event") == "cycles") & (pl.col("owner") == "Conv2d"))
    assert cycles["value"].to_list() == [334.0 + 35.0]


STAGES = spans(
    [
        (0, None, 0, "iteration", "iteration 0", 0, 100),
        (1, 0, 0, "stage", "load", 0, 10),
        (2, 0, 0, "stage", "load", 10, 30),
        (3, 0, 0, "stage", "postprocess", 40, 90),
        (4, 3, 0, "stage", "nms", 40, 80),
    ]
)


def test_nested_stages_are_parts_and_not_counted_twice() -> None:
    passed = record([(0, False, 0, True)], [["cycles"]])
    values = counts([(0, 1, 10, "cycles", 5), (0, 2, 10, "cycles", 7), (0, 4, 10, "cycles", 11)])
    found = stage_table(STAGES, values, passed, select(passed.iterations), DEFINITIONS, 1)
    columns = ("owner", "inside", "calls", "total_ns", "call_mean_ns", "call_min_ns", "call_max_ns", "share")
    assert found.rows.select(columns).rows() == [
        ("load", None, 2, 30, 15.0, 10.0, 20.0, 0.3),
        ("postprocess", None, 1, 50, 50.0, 50.0, 50.0, 0.5),
        ("nms", "postprocess", 1, 40, 40.0, 40.0, 40.0, 0.4),
        (UNATTRIBUTED, None, None, 20, None, None, None, 0.2),
    ]
    assert found.rows["call_std_ns"].to_list()[0] == pytest.approx(50**0.5)
    assert found.counters.select("owner", "value").rows() == [("load", 12.0), ("nms", 11.0)]


def test_stages_of_an_empty_pass() -> None:
    passed = record([], [])
    found = stage_table(STAGES, counts([]), passed, select([]), DEFINITIONS, 1)
    assert found.rows["owner"].to_list() == [UNATTRIBUTED]


def test_operators_grouped_by_name_and_shapes() -> None:
    rows = [
        (0, None, 0, "iteration", "iteration 0", 0, 200),
        (1, None, 0, "op", "conv2d", 0, 100),
        (2, None, 0, "op", "mkldnn", 10, 90),
        (3, None, 0, "op", "mkldnn", 20, 40),  # calls itself
        (4, None, 0, "op", "conv2d", 100, 150),  # begins when the other ends: beside it, not in it
        (5, None, 0, "op", "silu", 140, 160),  # outlasts the one around it by 10
        (6, None, 1, "op", "conv2d", 300, 400),  # another iteration
    ]
    table = spans(rows).with_columns(input_shapes=pl.when(pl.col("span") == 4).then(pl.lit("2")).otherwise(pl.lit("1")))
    calls = operator_calls(table, (0,))
    found = operator_table(calls)
    assert found.select("name", "input_shapes", "count", "self_ns", "inclusive_ns").rows() == [
        ("mkldnn", "1", 2, 60 + 20, 80),
        ("conv2d", "2", 1, 40, 50),
        ("conv2d", "1", 1, 20, 100),
        ("silu", "1", 1, 20, 20),
    ]
    assert found["share"].to_list() == [80 / 160, 40 / 160, 20 / 160, 20 / 160]
    assert coverage(calls, table, (0,)) == 160 / 200


def test_no_operators() -> None:
    calls = operator_calls(STAGES, (0,))
    assert operator_table(calls).is_empty()
    assert coverage(calls, STAGES, (0,)) is None


Tree: st.SearchStrategy[list[object]] = st.recursive(
    st.just([]), lambda children: st.lists(children, max_size=3), max_leaves=12
)


def _lay_out(tree: list[object], begin: int, rows: list[tuple[int, int | None, int, str, str, int, int]]) -> int:
    """Appends a nest of operators and returns where it ends; each has 2 ns of its own before and after its children."""
    number = len(rows)
    rows.append((number, None, 0, "op", f"op{len(tree)}", begin, begin))
    now = begin + 2
    for child in tree:
        assert isinstance(child, list)
        now = _lay_out(child, now, rows)
    rows[number] = (number, None, 0, "op", f"op{len(tree)}", begin, now + 2)
    return now + 2


@given(st.lists(Tree, max_size=4))
def test_self_times_add_up_to_the_outermost_operators(trees: list[list[object]]) -> None:
    rows: list[tuple[int, int | None, int, str, str, int, int]] = []
    end = 0
    for tree in trees:
        end = _lay_out(tree, end, rows)
    found = operator_table(operator_calls(spans(rows), (0,)))
    assert found["self_ns"].sum() == end
    assert found["self_ns"].sum() == 4 * len(rows)
    assert found["count"].sum() == len(rows)


@pytest.mark.parametrize(
    ("macs", "timed", "expected"),
    [([1, 2], ["a", "b"], 3), ([1, None], ["a"], 1), ([1, None], ["a", "b"], None), ([None, None], [], None)],
)
def test_a_sum_is_known_where_all_is_that_takes_time(
    macs: list[int | None], timed: list[str], expected: int | None
) -> None:
    leaves = pl.DataFrame({"owner": ["a", "b"], "macs": macs}, schema_overrides={"macs": pl.Int64})
    assert leaves.select(sum_where_known("macs", timed)).item() == expected
