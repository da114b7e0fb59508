"""Rows for layers that are done in one."""

from __future__ import annotations

from typing import Any

import polars as pl

from hwprof.run.schema import TABLES
from hwprof.session.fused_layers import with_fused


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


def test_a_row_has_the_work_of_those_that_are_in_it_and_these_are_gone() -> None:
    found = with_fused(LAYERS, {"a.conv+act": ["a.conv", "a.act"]}, {"a.conv+act", "b"})
    assert rows(found)[0] == ("a.conv+act", "Conv2d+SiLU", 500, 900, 30, "1x8", 2)
    assert found["path"].to_list() == ["a.conv+act", "b"] and found["macs"].sum() == LAYERS["macs"].sum()


def test_where_a_layer_is_seen_by_itself_too_nobody_knows_who_did_what() -> None:
    found = with_fused(LAYERS, {"a.conv+act": ["a.conv", "a.act"]}, {"a.conv+act", "a.conv", "a.act"})
    assert found["path"].to_list() == ["a.conv", "a.conv+act", "a.act", "b"]
    assert rows(found)[1][2:4] == (None, None)


def test_what_is_not_of_the_same_shape_moves_other_bytes() -> None:
    found = with_fused(LAYERS, {"x": ["a.act", "b"]}, {"x"})
    assert rows(found)[1] == ("x", "SiLU+Linear", 80, None, 10, "1x2", 2)
