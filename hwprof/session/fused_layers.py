"""Rows of the table ``layers`` for layers that another program than PyTorch does: what it does several of them in is
measured, and these are not; and a layer's work is where its products are done."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import polars as pl

from hwprof.workload.runtimes.operators import SEPARATOR
from hwprof.workload.runtimes.products import Products

Row = dict[str, Any]


def with_fused(
    layers: pl.DataFrame,
    fused: Mapping[str, Sequence[str]],
    seen: Collection[str],
    products: Mapping[str, Products],
) -> pl.DataFrame:
    """The table with a row for each of ``fused`` that was ``seen``: paths, by the names of what does them. A layer that
    is in one of these, and was never seen by itself, has no row any more. ``products``: by a layer's path."""
    groups = {name: list(dict.fromkeys(paths)) for name, paths in fused.items() if name in seen}
    rows = {row["path"]: row for row in layers.to_dicts()}
    work = _Work(rows, groups, seen, products)
    found = [_of_group(name, paths, work) for name, paths in groups.items() if any(path in rows for path in paths)]
    kept = [_of_layer(row, work) for path, row in rows.items() if path not in work.gone]
    return pl.DataFrame([*kept, *found], schema=layers.schema).sort("order", maintain_order=True)


class _Work:
    """Which row has how much of a layer's."""

    def __init__(
        self,
        rows: Mapping[str, Row],
        groups: Mapping[str, Sequence[str]],
        seen: Collection[str],
        products: Mapping[str, Products],
    ) -> None:
        self.rows = rows
        self.groups: dict[str, list[str]] = {}
        """By the path of a layer: those that do something of it."""
        for name, paths in groups.items():
            for path in paths:
                self.groups.setdefault(path, []).append(name)
        self.gone = {path for path in self.groups if path not in seen and path in rows}
        self._products = products
        self.own: dict[str, list[Row]] = {}
        """Of modules whose own products are done in a group, by its name."""
        for path in [path for path in products if path in rows and not rows[path]["leaf"]]:
            for name in products[path].places.keys() & groups.keys():
                self.own.setdefault(name, []).append(rows[path])

    def macs(self, row: Row, at: str) -> int | None:
        """Of a layer's, or of a module's own, what is done there. None: not known."""
        whole: int | None = row["macs"] if row["leaf"] else row["own_macs"]
        if not whole:
            return whole
        share = self._share(row["path"], at)
        if share is None:
            return None
        done = share * whole
        return int(done) if done.denominator == 1 else None

    def parameters(self, row: Row, at: str) -> int | None:
        """They are told once: where the products are done, where that is one place."""
        share = self._share(row["path"], at)
        is_here = bool(share) if share in (0, 1) else at == self._first(row["path"])
        known: int | None = row["parameters"]
        return known if is_here else 0

    def is_whole(self, path: str, at: str) -> bool:
        """Whether all that is done of a layer is done there."""
        here = self.groups.get(path, [])
        return here == [at] and path in self.gone if at != path else not here

    def _share(self, path: str, at: str) -> Fraction | None:
        known = self._products.get(path)
        if known is None:
            return Fraction(at == self._first(path)) if self._is_in_one_place(path) else None
        return known.share(at)

    def _is_in_one_place(self, path: str) -> bool:
        return len(self.groups.get(path, [])) + (path not in self.gone) == 1

    def _first(self, path: str) -> str:
        return self.groups[path][0] if path in self.gone else path


def _of_layer(row: Row, work: _Work) -> Row:
    """With what is done in its own name."""
    path = row["path"]
    if not row["leaf"]:
        return row | {"own_macs": work.macs(row, path)}
    size_bytes = row["bytes"] if work.is_whole(path, path) else None
    return row | {"macs": work.macs(row, path), "parameters": work.parameters(row, path), "bytes": size_bytes}


def _of_group(name: str, paths: Sequence[str], work: _Work) -> Row:
    """As the first of its members, with what all of them, and the module around them, have in it."""
    members = [work.rows[path] for path in paths if path in work.rows]
    first, *following = members
    moves_no_more = all(not row["parameters"] and row["input_shapes"] == row["output_shapes"] for row in following)
    whole = len(name.split(SEPARATOR)) == len(members) and all(work.is_whole(row["path"], name) for row in members)
    return first | {
        "path": name,
        "type": SEPARATOR.join(row["type"] for row in members),
        "leaf": True,
        "depth": name.count("."),
        "parameters": _sum(work.parameters(row, name) for row in members),
        "macs": _sum(work.macs(row, name) for row in (*members, *work.own.get(name, []))),
        "own_macs": 0,
        "bytes": first["bytes"] if whole and moves_no_more else None,
        "calls": min(row["calls"] for row in members),
        "output_shapes": members[-1]["output_shapes"],
        "denormal_share": None,
    }


def _sum(values: Iterable[int | None]) -> int | None:
    found = list(values)
    return None if None in found else sum(one for one in found if one is not None)
