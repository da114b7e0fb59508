"""Which layers get their memory anew from the kernel."""

from __future__ import annotations

import polars as pl

from hwprof.analysis.allocations import SCHEMA
from hwprof.analysis.layer_memory import ROWS, anew, layer_memory
from tests.support.small_tables import layers

LAYERS = layers([("a", "Conv2d", True), ("b", "ReLU", True), ("c", "ReLU", True)])


def table(rows: list[tuple[str, float, float | None]], page_bytes: int | None = 4096) -> pl.DataFrame:
    """(layer, allocated bytes, faults)"""
    known = [{"layer": name, "allocated_bytes": size} for name, size, _ in rows]
    allocated = pl.DataFrame(known, schema_overrides={"allocated_bytes": pl.Float64}).with_columns(
        pl.lit(None, kind).alias(name) for name, kind in SCHEMA.items() if name not in ("layer", "allocated_bytes")
    )
    faults = pl.DataFrame(
        [(name, count) for name, _, count in rows], schema={"layer": str, "faults": float}, orient="row"
    )
    found = layer_memory(allocated.select(SCHEMA.names()), faults, LAYERS, page_bytes)
    assert found.schema == ROWS
    return found


def test_new_pages_are_told_against_what_is_allocated() -> None:
    found = table([("a", 1_000_000, 200), ("b", 4_000_000, 10), ("c", 0, 7), ("whole", 5_000_000, 217)])
    assert found["layer"].to_list() == ["whole", "a", "b", "c"]
    assert found["new_bytes"].to_list() == [217 * 4096, 200 * 4096, 10 * 4096, 7 * 4096]
    assert found["fresh"].to_list() == [217 * 4096 / 5e6, 200 * 4096 / 1e6, 10 * 4096 / 4e6, None]
    assert found["type"].to_list() == [None, "Conv2d", "ReLU", "ReLU"]
    assert anew(found) == ["a"]


def test_never_more_than_all_of_it_is_fresh_and_nothing_where_nobody_counted() -> None:
    assert table([("a", 8192, 100)])["fresh"].to_list() == [1.0]
    assert table([("a", 8192, None), ("whole", 8192, None)])["fresh"].to_list() == [None, None]
    assert table([("a", 8192, 1)], None)["new_bytes"].to_list() == [None]
    assert anew(table([("a", 8192, None), ("whole", 8192, None)])) == []
