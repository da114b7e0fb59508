"""Rows of the table ``layers`` for layers that another program than PyTorch does in one: what it does them in is
measured, and they are not."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import polars as pl

from hwprof.workload.runtimes.operators import SEPARATOR


def with_fused(layers: pl.DataFrame, fused: Mapping[str, Sequence[str]], seen: Collection[str]) -> pl.DataFrame:
    """The table with a row for each of ``fused``: paths, by the names of what does them. A layer that is in one of
    these, and was never ``seen`` by itself, has no row any more."""
    rows = {row["path"]: row for row in layers.to_dicts()}
    gone = {path for paths in fused.values() for path in paths if path not in seen and path in rows}
    found = []
    for name, paths in fused.items():
        members = [rows[path] for path in dict.fromkeys(paths) if path in rows]
        if members:
            found.append(_row(name, members, [other for other in fused if other != name], fused, gone))
    kept = [row for path, row in rows.items() if path not in gone]
    return pl.DataFrame([*kept, *found], schema=layers.schema).sort("order", maintain_order=True)


def _row(
    name: str,
    members: Sequence[dict[str, Any]],
    others: Sequence[str],
    fused: Mapping[str, Sequence[str]],
    gone: Collection[str],
) -> dict[str, Any]:
    """As the first of its members, with what all of them have together: unknown where a member with products is done
    elsewhere, too."""
    first, *following = members
    elsewhere = {path for other in others for path in fused[other]}
    alone = all(row["macs"] == 0 or (row["path"] in gone and row["path"] not in elsewhere) for row in members)
    moves_no_more = all(not row["parameters"] and row["input_shapes"] == row["output_shapes"] for row in following)
    return first | {
        "path": name,
        "type": SEPARATOR.join(row["type"] for row in members),
        "leaf": True,
        "depth": name.count("."),
        "parameters": _sum(members, "parameters"),
        "macs": _sum(members, "macs") if alone else None,
        "own_macs": 0,
        "bytes": first["bytes"] if alone and moves_no_more and first["path"] not in elsewhere else None,
        "calls": min(row["calls"] for row in members),
        "output_shapes": members[-1]["output_shapes"],
        "denormal_share": None,
    }


def _sum(rows: Sequence[dict[str, Any]], name: str) -> int | None:
    values = [row[name] for row in rows]
    return None if None in values else sum(values)
