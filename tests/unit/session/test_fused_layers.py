"""Rows for layers that are done in one."""

from __future__ import annotations

from typing import Any, Final

import polars as pl

from hwprof.run.schema import TABLES
from hwprof.session.fused_layers import with_fused
from hwprof.workload.runtimes.products import Products


def row(
    order: int, path: str, kind: str, macs: int, parameters: int, size: int, shapes: tuple[str, str]
) -> dict[str, Any]:
    known = {"order": order, "path": path, "type": kind, "leaf": True, "depth": path.count("."), "calls": 2}
    amounts = {
        "macs": macs,
        "own_macs": 0,
        "parameters": parameters,
        "bytes": size,
        "more_shapes": 0,
        "compiled": False,
    }
    return {
        **dict.fromkeys(TABLES["layers"]),
        **known,
        **amounts,
        "input_shapes": shapes[0],
        "output_shapes": shapes[1],
    }


LAYERS = pl.DataFrame(
    [
        row(0, "a.conv", "Conv2d", 500, 30, 900, ("1x3", "1x8")),
        row(1, "a.act", "SiLU", 0, 0, 64, ("1x8", "1x8")),
        row(2, "b", "Linear", 80, 10, 70, ("1x8", "1x2")),
    ],
    schema=TABLES["layers"],
)
KEYS = ("path", "type", "macs", "bytes", "parameters", "output_shapes", "calls")


def rows(table: pl.DataFrame) -> list[tuple[Any, ...]]:
    return table.select(KEYS).rows()


CONV: Final = {"a.conv": Products({"a.conv+act": 1}, True), "b": Products({"b": 1}, True)}


def test_a_row_has_the_work_of_those_that_are_in_it_and_these_are_gone() -> None:
    found = with_fused(LAYERS, {"a.conv+act": ["a.conv", "a.act"]}, {"a.conv+act", "b"}, CONV)
    assert rows(found)[0] == ("a.conv+act", "Conv2d+SiLU", 500, 900, 30, "1x8", 2)
    assert found["path"].to_list() == ["a.conv+act", "b"] and found["macs"].sum() == LAYERS["macs"].sum()


def test_a_layer_s_work_is_where_its_products_are_whoever_is_seen_besides() -> None:
    """What is left of it in its own name, as changing a layout, has none."""
    seen = {"a.conv+act", "a.conv", "a.act", "b"}
    found = with_fused(LAYERS, {"a.conv+act": ["a.conv", "a.act"]}, seen, CONV)
    assert found["path"].to_list() == ["a.conv", "a.conv+act", "a.act", "b"]
    assert [row[2:5] for row in rows(found)[:3]] == [(0, None, 0), (500, None, 30), (0, None, 0)]


def test_a_layer_that_is_called_twice_shares_its_work_where_it_is_known_to_be_the_same() -> None:
    seen, fused = {"a.conv+act", "a.conv", "b"}, {"a.conv+act": ["a.conv", "a.act"]}
    twice = {"a.conv+act": 1, "a.conv": 1}
    found = with_fused(LAYERS, fused, seen, {"a.conv": Products(twice, True)})
    assert [row[:3] for row in rows(found)] == [
        ("a.conv", "Conv2d", 250),
        ("a.conv+act", "Conv2d+SiLU", 250),
        ("b", "Linear", 80),
    ]
    assert found["parameters"].sum() == LAYERS["parameters"].sum()
    found = with_fused(LAYERS, fused, seen, {"a.conv": Products(twice, False)})
    assert found["macs"].to_list() == [None, None, 80], "nobody knows which did what"


def test_where_nobody_says_who_does_its_products_one_in_two_places_has_unknown_ones() -> None:
    found = with_fused(LAYERS, {"a.conv+act": ["a.conv", "a.act"]}, {"a.conv+act", "a.conv", "b"}, {})
    assert found["macs"].to_list() == [None, None, 80]
    found = with_fused(LAYERS, {"a.conv+act": ["a.conv", "a.act"]}, {"a.conv+act", "b"}, {})
    assert found["macs"].to_list() == [500, 80]


def test_a_group_that_was_never_seen_has_no_row_and_its_layers_have_theirs() -> None:
    found = with_fused(LAYERS, {"a.act+b": ["a.act", "b"]}, {"a.conv", "b"}, {"b": Products({"b": 1}, True)})
    assert found["path"].to_list() == ["a.conv", "a.act", "b"] and found["macs"].sum() == LAYERS["macs"].sum()


def test_what_the_module_around_multiplies_is_the_group_s_that_does_it() -> None:
    around = row(0, "a", "Block", 700, 0, 0, ("1x3", "1x8")) | {"leaf": False, "own_macs": 200}
    layers = pl.DataFrame([around, *LAYERS.with_columns(pl.col("order") + 1).to_dicts()], schema=TABLES["layers"])
    products = {"a": Products({"a.act+matmul": 1}, True), **CONV}
    found = with_fused(layers, {"a.act+matmul": ["a.act"]}, {"a.act+matmul", "a.conv", "b"}, products)
    assert found.filter(pl.col("path") == "a")["own_macs"].item() == 0
    assert rows(found.filter(pl.col("path") == "a.act+matmul"))[0][2:4] == (200, None)


def test_what_is_not_of_the_same_shape_moves_other_bytes() -> None:
    found = with_fused(LAYERS, {"x+y": ["a.act", "b"]}, {"x+y"}, {"b": Products({"x+y": 1}, True)})
    assert rows(found)[1] == ("x+y", "SiLU+Linear", 80, None, 10, "1x2", 2)
