"""Which calls of operators are made from the same line of the pipeline, though only some of them were looked at.

A class's code is the same in each of its instances: what one block's ``conv`` is called from, every block's of that
class is. So looks at the calls of one operator in alike modules tell of those that nobody looked at. Alike is a module
under the same name in the same class, where the line that was met lies in that class or in the module's own; else one
whose classes and names agree all the way up to the model, list positions aside.
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from hwprof.analysis.owners import ROOT, own

AGREE: Final = 0.9
"""So many of the looks at alike calls must have met one line: the others may be late by more than their error."""

LEAST: Final = 3
"""Looks, that must have met it."""

GROUPS: Final = pl.Schema(
    {
        "layer": pl.String(),  # an owner of ``attribution``
        "classes": pl.List(pl.String()),  # whose code its operators may be called from: its own, and its caller's
        "in_class": pl.String(),  # alike where the line lies in one of these
        "in_model": pl.String(),  # alike wherever it lies
    }
)

_POSITION: Final = re.compile(r"(?<![^.])\d+(?![^.])")


def groups(layers: pl.DataFrame) -> pl.DataFrame:
    """Of each layer, and of every module's own code, which others it is like: ``GROUPS``. ``layers``: the table."""
    types = dict(layers.select("path", "type").iter_rows())
    rows: list[tuple[str, str, str | None, str, str]] = []
    for path, kind in types.items():
        caller = types.get(_parent(path), "")
        name = _POSITION.sub("#", path.rpartition(".")[2])
        chain = " ".join((_POSITION.sub("#", path), *_types_above(path, types), kind))
        rows.append((path, kind, caller, f"{caller} {name} {kind}", chain))
        rows.append((own(path), kind, None, kind, f"{chain} own"))
    texts = dict.fromkeys(("layer", "kind", "caller", "in_class", "in_model"), pl.String())
    found = pl.DataFrame(rows, schema=texts, orient="row")
    return found.with_columns(classes=pl.concat_list("kind", "caller").list.drop_nulls()).select(GROUPS.names())


def agreed(looked: pl.DataFrame, asked: pl.DataFrame) -> pl.Series:
    """Of each row of ``asked`` the line that looks at alike calls agree on; null: nobody knows.

    Both have ``operator`` and the columns of ``GROUPS``; a row of ``looked`` is a look, with the ``line`` that it met
    (any number; null: none of the pipeline's) and the ``function`` of this line.
    """
    parts = pl.col("function").str.split(".")
    inside = looked.with_columns(lies_in=pl.col("classes").list.set_intersection(parts).list.len() > 0)
    found = pl.lit(None, looked.schema["line"])
    told = asked.select("in_class", "in_model", "operator")
    for group, holds in (("in_class", pl.col("lies_in").all()), ("in_model", pl.lit(value=True))):
        keys = [group, "operator"]
        counts = inside.group_by(*keys, "line").agg(pl.len(), holds=holds).sort("len", descending=True)
        most = counts.group_by(keys, maintain_order=True).agg(pl.col("line", "len", "holds").first(), all=pl.sum("len"))
        lines = most.filter(pl.col("holds") & (pl.col("len") >= LEAST) & (pl.col("len") >= AGREE * pl.col("all")))
        told = told.join(
            lines.select(*keys, pl.col("line").alias(f"line_{group}")), on=keys, how="left", maintain_order="left"
        )
        found = pl.coalesce(found, f"line_{group}")
    return told.select(line=found)["line"]


def _parent(path: str) -> str | None:
    """None: the model itself has none."""
    return None if path == ROOT else path.rpartition(".")[0]


def _types_above(path: str, types: dict[str, str]) -> list[str]:
    found: list[str] = []
    while (above := _parent(path)) is not None:
        path = above
        found.append(types.get(path, ""))
    return found
