"""DRAM traffic while something ran, from cumulative readings of the whole machine's memory controllers.

No thread can be charged with it: it is what every program moved during the windows of a layer or a stage. The readings
come every ten milliseconds or more, and a window's edges lie between two of them; what moved between these two may
belong to either side. A figure is given where that is at most ``OPEN`` of it, i.e. (at steady traffic) from windows of
about eight reading intervals on; the others are null.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

import polars as pl

from hwprof.analysis.attribution import leaf_spans, whole_spans
from hwprof.analysis.owners import WHOLE
from hwprof.analysis.readings import WINDOW, covered
from hwprof.analysis.recursion import outermost_calls
from hwprof.data_files import read_toml
from hwprof.hardware.catalogue import Recipe
from hwprof.hardware.metrics import definition, vocabulary
from hwprof.run.manifest import MetricDefinition

PREFIX: Final = "uncore/"
"""Series of the whole machine; the collector of that name writes them."""

READ, WRITE, TOTAL = (f"{PREFIX}dram-{what}" for what in ("read", "write", "total"))
"""Reads and writes; where the processor does not tell them apart, both together."""

OPEN: Final = 0.25
"""The largest share of a figure that its edges may leave open."""

_RESOLVED: Final = (pl.col("seconds") > 0) & (pl.col("bytes_error") <= OPEN * pl.col("bytes"))

SCHEMA: Final = {
    "series": pl.String,
    "owner": pl.String,
    "windows": pl.Int64,
    "seconds": pl.Float64,
    "bytes": pl.Float64,
    "bytes_error": pl.Float64,
    "gbytes_per_s": pl.Float64,  # null: not resolved
    "gbytes_per_s_error": pl.Float64,
}


@dataclass(frozen=True)
class Traffic:
    """Tables in ``SCHEMA``: by leaf layer (and the whole), by layer type, by stage."""

    layers: pl.DataFrame
    layer_types: pl.DataFrame
    stages: pl.DataFrame


@cache
def definitions() -> tuple[MetricDefinition, ...]:
    """The metrics that follow from the traffic, by the vocabulary's names."""
    names = {name.name: name for name in vocabulary()}
    recipes = read_toml(__name__, "uncore.toml", dict[str, list[Recipe]])["metric"]
    return tuple(definition(names[recipe.name], [("", recipe)], frozenset()) for recipe in recipes)


def by_owner(spans: pl.DataFrame, layers: pl.DataFrame, series: pl.DataFrame, iterations: tuple[int, ...]) -> Traffic:
    """The traffic of one pass: ``spans`` and ``series`` hold its rows only, ``layers`` is the run's layer table."""
    kept = spans.filter(pl.col("iteration").is_in(list(iterations)))
    wholes, _ = whole_spans(kept)
    leaves = outermost_calls(leaf_spans(kept, layers)).join(
        layers.unique("path", keep="first").select("path", "type"), on="path", how="left"
    )
    own = pl.concat([leaves.select(*WINDOW, owner="path"), wholes.select(*WINDOW, owner=pl.lit(WHOLE))])
    stages = kept.filter(pl.col("kind") == "stage")
    return Traffic(
        traffic(own, series),
        traffic(leaves.select(*WINDOW, owner="type"), series),
        traffic(stages.select(*WINDOW, owner="path"), series),
    )


def traffic(windows: pl.DataFrame, series: pl.DataFrame) -> pl.DataFrame:
    """One row a series and owner, in ``SCHEMA``; ``windows`` has ``owner, begin_ns, end_ns``, ``series`` is the table.

    ``bytes_error`` bounds the error: what moved between the two readings around each edge. Windows that the readings do
    not cover are left out; empty without such series.
    """
    meters = series.filter(pl.col("name").str.starts_with(PREFIX) & (pl.col("unit") == "B")).drop_nulls("value")
    tables = [
        _table(str(name), covered(meter, windows))
        for (name,), meter in meters.sort("time_ns").partition_by("name", as_dict=True, maintain_order=True).items()
        if meter.height > 1
    ]
    return pl.concat(tables) if tables else pl.DataFrame(schema=SCHEMA)


def operands(found: pl.DataFrame) -> pl.DataFrame:
    """The formulas' operands, one row an owner and one column a series: bytes per ns; null where not resolved.

    Reads and writes make a total where that is no series of its own. It may be resolved where the fewer of the two are
    not.
    """
    if found.is_empty():
        return pl.DataFrame(schema={"owner": pl.String})
    rates = found.pivot("series", index="owner", values="gbytes_per_s")
    if TOTAL not in rates.columns and {READ, WRITE} <= set(rates.columns):
        rates = rates.join(_total(found), on="owner", how="left", maintain_order="left")
    return rates


def _total(found: pl.DataFrame) -> pl.DataFrame:
    """Owner and the rate of reads and writes together, of those that have both."""
    both = (
        found.filter(pl.col("series").is_in([READ, WRITE]))
        .group_by("owner")
        .agg(
            pl.len(),
            pl.col("bytes", "bytes_error").sum(),
            rate=(pl.col("bytes") / pl.col("seconds") / 1e9).sum(),
            seconds=pl.col("seconds").min(),
        )
    )
    total = pl.when((pl.col("len") == 2) & _RESOLVED).then("rate").alias(TOTAL)
    return both.select("owner", total)


def _table(series: str, used: pl.DataFrame) -> pl.DataFrame:
    sums = used.group_by("owner", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("windows"),
        pl.col("seconds").sum(),
        pl.col("amount").sum().alias("bytes"),
        pl.col("slack").sum().alias("bytes_error"),
    )
    rates = {
        f"gbytes_per_s{suffix}": pl.when(_RESOLVED).then(pl.col(f"bytes{suffix}") / pl.col("seconds") / 1e9)
        for suffix in ("", "_error")
    }
    return sums.with_columns(series=pl.lit(series), **rates).select(*SCHEMA).cast(pl.Schema(SCHEMA))
