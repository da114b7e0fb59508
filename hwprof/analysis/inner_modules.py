"""Which module lies within which: by its path, and by its calls."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from hwprof.analysis.attribution import owner_of
from hwprof.analysis.owners import ROOT
from hwprof.errors import DamagedError


def outermost(layers: pl.DataFrame) -> pl.DataFrame:
    """The rows of the table ``layers`` that lie in no other: the model itself, where the run watched it."""
    rows = layers.unique("path", keep="first", maintain_order=True)
    paths = set(rows["path"])
    inside = [any(outer in paths for outer in around(path)) for path in rows["path"]]
    return rows.filter(~pl.Series(inside, dtype=pl.Boolean))


def around(path: str) -> Iterator[str]:
    """The paths of all modules around one, the innermost first."""
    while path != ROOT:
        path = path.rpartition(".")[0]
        yield path


def within_modules(calls: pl.DataFrame, layers: pl.DataFrame) -> pl.DataFrame:
    """Which part of a row's time lies in the calls of a module: ``owner`` (the module's path), ``row`` (an owner of
    ``attribution``) and ``part``, 1 unless others call the row's module as well. ``calls``: spans of modules.

    A call without a caller, on a thread of its own, lies in the modules that its path says, and so does what it calls.
    """
    inner = layers.filter(~pl.col("leaf")).select("path").unique()
    rows = layers.unique("path", keep="first").select("path", row=owner_of(pl.col("path"), pl.col("leaf")))
    known = _without_itself(calls.join(rows, on="path", how="inner"))
    found = pl.concat([_callers(known), _by_path(known)]).unique()
    found = found.join(inner, left_on="owner", right_on="path", how="semi")
    whole = known.group_by("row").agg(whole_ns=pl.col("time_ns").sum())
    parts = found.join(known.select("span", "row", "time_ns"), on="span").group_by("owner", "row")
    part = pl.when(pl.col("whole_ns") > 0).then(pl.col("time_ns") / pl.col("whole_ns")).otherwise(1.0)
    return parts.agg(pl.col("time_ns").sum()).join(whole, on="row").select("owner", "row", part=part)


def _without_itself(calls: pl.DataFrame) -> pl.DataFrame:
    """``time_ns`` of each call, without that of the calls of the same module that it makes."""
    lasted = pl.col("end_ns") - pl.col("begin_ns")
    of_itself = calls.group_by("path", span="parent").agg(itself_ns=lasted.sum())
    joined = calls.join(of_itself, on=["span", "path"], how="left", maintain_order="left")
    return joined.select("span", "parent", "path", "row", time_ns=lasted - pl.col("itself_ns").fill_null(0))


def _callers(known: pl.DataFrame) -> pl.DataFrame:
    """``span`` and ``owner``: itself, who called it, who called that one, … Raises ``DamagedError`` where a span does
    not come after its caller: they may go round in a circle."""
    if (known["parent"] >= known["span"]).any():
        raise DamagedError("the table spans is damaged: a span stands before its caller", "hwprof collect again")
    up = known.select(parent="span", owner="path", next="parent")
    levels = []
    level = known.select("span", owner="path", parent="parent")
    while level.height:
        levels.append(level.select("span", "owner"))
        level = level.select("span", "parent").join(up, on="parent", how="inner").select("span", "owner", parent="next")
    return pl.concat(levels) if levels else known.select("span", owner="path")


def _by_path(known: pl.DataFrame) -> pl.DataFrame:
    """The same of those that no module called, and of all that is in them: what is around the outermost one by its
    path."""
    up = known.select(parent="span", top="path", next="parent")
    tops = []
    level = known.select("span", "parent", top="path")
    while level.height:
        tops.append(level.join(up, on="parent", how="anti").select("span", "top"))
        level = level.drop("top").join(up, on="parent", how="inner").select("span", "top", parent="next")
    alone = pl.concat(tops) if tops else known.select("span", top="path")
    pairs = [(path, outer) for path in alone["top"].unique() for outer in around(path)]
    outer = pl.DataFrame(pairs, schema={"top": pl.String, "owner": pl.String}, orient="row")
    return alone.join(outer, on="top").select("span", "owner")
