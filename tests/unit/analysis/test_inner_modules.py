"""Modules around layers: their parameters, MACs and time, and shares that are those of their rows."""

from __future__ import annotations

import polars as pl
import pytest

from hwprof.analysis.attribution import attribute
from hwprof.analysis.inner_modules import outermost, within_modules
from hwprof.analysis.layers import layer_table, module_table
from hwprof.analysis.owners import ROOT, UNATTRIBUTED, WHOLE, own
from hwprof.errors import HwprofError
from hwprof.hardware.metrics import independent
from tests.support.small_tables import MAIN, WORKER, counts, layers, record, spans

MODULES = layers(
    [
        (ROOT, "Net", False),
        ("a", "Block", False),
        ("a.conv", "Conv2d", True),
        ("a.act", "SiLU", True),
        ("b", "Block", False),
        ("b.conv", "Conv2d", True),
        ("spare", "Block", False),
        ("spare.conv", "Conv2d", True),
    ]
)
CALLED = pl.col("path").str.starts_with("spare").not_()

Times = tuple[int, int, int, int]  # of a.conv, a.act in a, b.conv, a.act in b


def iterations(times: list[Times]) -> pl.DataFrame:
    """``b`` calls the activation of ``a`` as well; a and b each do 10 ns of their own, the model 20, nobody 5."""
    rows: list[tuple[int, int | None, int, str, str, int, int]] = []
    for index, (conv, act, second, again) in enumerate(times):
        at, first = 1_000_000 * index, 10 * index
        block, other = conv + act + 10, second + again + 10
        model = block + other + 20
        rows += [
            (first, None, index, "stage", "inference", at, at + model + 5),
            (first + 1, first, index, "layer", ROOT, at, at + model),
            (first + 2, first + 1, index, "layer", "a", at, at + block),
            (first + 3, first + 2, index, "layer", "a.conv", at + 10, at + 10 + conv),
            (first + 4, first + 2, index, "layer", "a.act", at + 10 + conv, at + block),
            (first + 5, first + 1, index, "layer", "b", at + block, at + block + other),
            (first + 6, first + 5, index, "layer", "b.conv", at + block + 10, at + block + 10 + second),
            (first + 7, first + 5, index, "layer", "a.act", at + block + 10 + second, at + block + other),
        ]
    return spans(rows)


def tables(times: list[Times]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Of layers, and of modules."""
    rows = iterations(times)
    known = MODULES.with_columns(calls=pl.when(CALLED).then("calls").otherwise(0).cast(pl.Int32))
    attribution = attribute(
        rows, counts([]), known, record([(number, False, None, False) for number in range(len(times))], [])
    )
    found = layer_table(known, attribution, independent(), 2).rows
    return found, module_table(rows, known, attribution, found)


def shares(table: pl.DataFrame) -> dict[str, float]:
    return dict(table.select("owner", "share").iter_rows())


DISTURBED: list[Times] = [
    (100, 40, 900, 60),
    (900, 40, 100, 60),
    (100, 40, 100, 60),
    (900, 40, 100, 60),
    (100, 40, 900, 60),
]


def test_a_modules_share_is_that_of_its_rows_and_never_more_than_all() -> None:
    """The model's own median is more than the sum of those of its parts: other layers are slow in each iteration."""
    rows, modules = tables([(100, 40, 900, 0), (900, 40, 100, 0), (900, 40, 900, 0)])
    of_rows, of_modules = shares(rows), shares(modules)
    assert of_modules[ROOT] == pytest.approx(1 - of_rows[UNATTRIBUTED])
    assert of_modules["b"] == pytest.approx(of_rows["b.conv"] + of_rows[own("b")])
    rows, modules = tables(DISTURBED)
    times = dict(modules.select("owner", "time_median_ns").iter_rows())
    assert times[ROOT] == 1040 + 20 + 20 + 60 and rows.filter(owner=WHOLE)["time_median_ns"].item() == 1145
    assert rows.filter(pl.col("owner") != WHOLE)["time_median_ns"].sum() < times[ROOT]  # its share would be more than 1
    assert shares(modules)[ROOT] == pytest.approx(1 - shares(rows)[UNATTRIBUTED])


def test_of_a_row_that_others_call_too_a_module_has_that_part_of_its_time() -> None:
    rows, modules = tables(DISTURBED)
    of_rows, of_modules = shares(rows), shares(modules)
    assert of_modules["a"] == pytest.approx(of_rows["a.conv"] + of_rows[own("a")] + 0.4 * of_rows["a.act"])
    assert of_modules["b"] == pytest.approx(of_rows["b.conv"] + of_rows[own("b")] + 0.6 * of_rows["a.act"])


def test_a_module_that_was_never_called_has_its_parameters_and_nothing_else() -> None:
    _, modules = tables(DISTURBED)
    known = {row["owner"]: row for row in modules.iter_rows(named=True)}
    assert [(row["parameters"], row["macs"]) for row in known.values()] == [(10, 1000)] * 3 + [(10, None)]
    spare = known["spare"]
    assert (spare["calls_per_iteration"], spare["time_median_ns"], spare["share"]) == (None, None, None)


def test_a_module_within_itself_has_its_time_once() -> None:
    rows = spans(
        [
            (1, None, 0, "layer", ROOT, 0, 100),
            (2, 1, 0, "layer", "a", 0, 90),
            (3, 2, 0, "layer", "a", 10, 80),
            (4, 3, 0, "layer", "a.conv", 20, 70),
        ]
    )
    parts = within_modules(rows, MODULES)
    assert set(parts.iter_rows()) == {
        (ROOT, own(ROOT), 1.0), (ROOT, own("a"), 1.0), (ROOT, "a.conv", 1.0),
        ("a", own("a"), 1.0), ("a", "a.conv", 1.0),
    }  # fmt: skip


def test_what_a_thread_of_its_own_calls_lies_where_its_path_says() -> None:
    rows = spans([(1, None, 0, "layer", ROOT, 0, 100), (2, None, 0, "layer", "a.conv", 10, 60)])
    rows = rows.with_columns(tid=pl.Series([MAIN, WORKER], dtype=pl.Int32))
    assert set(within_modules(rows, MODULES).iter_rows()) == {
        (ROOT, own(ROOT), 1.0), (ROOT, "a.conv", 1.0), ("a", "a.conv", 1.0),
    }  # fmt: skip


def test_what_is_in_a_block_on_a_thread_of_its_own_lies_in_what_is_around_that_too() -> None:
    rows = spans(
        [
            (1, None, 0, "layer", ROOT, 0, 100),
            (2, None, 0, "layer", "a", 10, 60),
            (3, 2, 0, "layer", "a.conv", 10, 50),
        ]
    ).with_columns(tid=pl.Series([MAIN, WORKER, WORKER], dtype=pl.Int32))
    assert set(within_modules(rows, MODULES).iter_rows()) == {
        (ROOT, own(ROOT), 1.0), (ROOT, own("a"), 1.0), (ROOT, "a.conv", 1.0),
        ("a", own("a"), 1.0), ("a", "a.conv", 1.0),
    }  # fmt: skip


def test_without_a_call_no_module_has_a_part_of_anything() -> None:
    assert within_modules(spans([]), MODULES).is_empty()


def test_the_outermost_modules_are_those_in_no_other() -> None:
    assert outermost(MODULES)["path"].to_list() == [ROOT]
    assert outermost(MODULES.filter(pl.col("path") != ROOT))["path"].to_list() == ["a", "b", "spare"]
    assert outermost(MODULES.filter("leaf"))["path"].to_list() == MODULES.filter("leaf")["path"].to_list()


@pytest.mark.parametrize(("products", "known"), [(0, 1500), (700, None), (None, None)])
def test_bytes_of_the_whole_are_not_known_beside_products_that_are_no_layers(
    products: int | None, known: int | None
) -> None:
    """FLOPs of all code over bytes of some of it would be nobody's operational intensity."""
    rows = iterations([(100, 40, 100, 60)])
    table = MODULES.filter(CALLED).with_columns(
        own_macs=pl.when(pl.col("path") == "b").then(products).when("leaf").then("macs").otherwise(0).cast(pl.Int64)
    )
    attribution = attribute(rows, counts([]), table, record([(0, False, None, False)], []))
    found = layer_table(table, attribution, independent(), 2)
    metrics = {row["owner"]: row for row in found.metrics.iter_rows(named=True)}
    assert found.rows.filter(owner=WHOLE)["bytes"].to_list() == [known]
    assert (metrics[WHOLE]["intensity"] is None, metrics[WHOLE]["gbytes"] is None) == (known is None, known is None)
    assert metrics["a.conv"]["intensity"] == 2 * 1000 / 500


def test_parameters_of_the_whole_are_the_models_own() -> None:
    """Some are no layer's, some are several layers'."""
    table = MODULES.with_columns(parameters=pl.when(pl.col("path") == ROOT).then(77).otherwise(10).cast(pl.Int64))
    rows = iterations([(100, 40, 100, 60)])
    attribution = attribute(rows, counts([]), table, record([(0, False, None, False)], []))
    found = layer_table(table, attribution, independent(), 2).rows
    assert found.filter(owner=WHOLE)["parameters"].to_list() == [77]


def test_spans_that_call_one_another_in_a_circle_are_damage_and_no_endless_search() -> None:
    rows = iterations([(10, 20, 30, 40)])
    turned = rows.with_columns(parent=pl.when(pl.col("path") == "a").then("span").otherwise("parent"))
    with pytest.raises(HwprofError, match="damaged"):
        within_modules(turned.filter(pl.col("kind") == "layer"), MODULES)
