"""The counts of an instrumented pass, for the tables of the pass that did the same work uninstrumented."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from hwprof.analysis import instrumented, layers, stages, summary, uncore
from hwprof.analysis.attribution import Attribution, attribute
from hwprof.analysis.layer_types import layer_type_table
from hwprof.run.manifest import PassRecord


@dataclass(frozen=True)
class Counted:
    """Counters by owner, as in ``Figures.counters``, and whose they are."""

    record: PassRecord
    layers: pl.DataFrame
    layer_types: pl.DataFrame
    stages: pl.DataFrame


def instrumented_counts(
    record: PassRecord, spans: pl.DataFrame, counts: pl.DataFrame, timed: Attribution, modules: pl.DataFrame
) -> Counted | None:
    """The counters of the pass's own events; ``spans`` and ``counts`` are its rows. None where there are none.

    Of a pass that was interrupted, those of whole layers.
    """
    counts = counts.filter(pl.col("event").is_in([event.name for event in record.events]))
    if counts.is_empty():
        return None
    counted = attribute(spans, counts, modules, record, disturbed_too=True)
    if record.status != "completed":
        counted, counts = instrumented.whole_layers(counted, timed), counts.clear()
    return Counted(
        record,
        layers.layer_table(modules, counted, (), None).counters,
        layer_type_table(modules, counted, (), None).counters,
        stages.stage_table(spans, counts, record, counted.iterations, (), None).counters,
    )


def further_operands(traffic: pl.DataFrame, counters: pl.DataFrame | None, cycles: pl.DataFrame | None) -> pl.DataFrame:
    """The operands by owner that do not come from the pass itself: DRAM traffic, these counters, sampled cycles."""
    found = uncore.operands(traffic)
    for further in (None if counters is None or counters.is_empty() else summary.as_operands(counters), cycles):
        if further is not None:
            found = found.join(further, on="owner", how="full", coalesce=True)
    return found


def with_counters(found: layers.Figures, counters: pl.DataFrame | None) -> layers.Figures:
    """The figures with these counters beside their own."""
    if counters is None:
        return found
    owned = counters.join(found.rows.select("owner"), on="owner", how="semi")
    return replace(found, counters=pl.concat([found.counters, owned.select(found.counters.columns)]))
