"""The counts of a pass that followed the code, for the tables of the pass that did the same work unfollowed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from hwprof.analysis import instrumented, layers, stages, summary
from hwprof.analysis.attribution import Attribution, attribute
from hwprof.analysis.layer_types import layer_type_table
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import PassRecord


@dataclass(frozen=True)
class Joined:
    """Counters by owner, as in ``Figures.counters``, and whose they are."""

    record: PassRecord
    layers: pl.DataFrame
    layer_types: pl.DataFrame
    stages: pl.DataFrame


def find(run: RunDirectory, main: PassRecord, timed: Attribution, modules: pl.DataFrame) -> Joined | None:
    """The counts that belong to ``main``'s times, with the machine's own instruction set; None where there are none.
    Of a pass that was interrupted, those of whole layers."""
    record = instrumented.belonging(run.kept_passes(), main)
    return _sums(run, record, timed, modules) if record is not None else None


def _sums(run: RunDirectory, record: PassRecord, timed: Attribution, modules: pl.DataFrame) -> Joined | None:
    mine = pl.col("pass") == record.name
    events = [event.name for event in record.events]
    spans = run.scan("spans").filter(mine).collect()
    counts = run.scan("counts").filter(mine & pl.col("event").is_in(events)).collect()
    if counts.is_empty():
        return None
    counted = attribute(spans, counts, modules, record)
    if record.status != "completed":
        counted, counts = instrumented.whole_layers(counted, timed), counts.clear()
    return Joined(
        record,
        layers.layer_table(modules, counted, (), None).counters,
        layer_type_table(modules, counted, (), None).counters,
        stages.stage_table(spans, counts, record, counted.iterations, (), None).counters,
    )


def operands(traffic: pl.DataFrame, counters: pl.DataFrame | None) -> pl.DataFrame:
    """The operands by owner that do not come from the pass itself."""
    if counters is None or counters.is_empty():
        return traffic
    return traffic.join(summary.as_operands(counters), on="owner", how="full", coalesce=True)


def with_counters(found: layers.Figures, counters: pl.DataFrame | None) -> layers.Figures:
    """The figures with these counters beside their own."""
    if counters is None:
        return found
    owned = counters.join(found.rows.select("owner"), on="owner", how="semi")
    return replace(found, counters=pl.concat([found.counters, owned.select(found.counters.columns)]))
