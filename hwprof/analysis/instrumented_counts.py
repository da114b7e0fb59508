"""The counts of an instrumented pass, for the tables of the pass that did the same work uninstrumented."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from hwprof.analysis import instrumented, layers, stages, summary, uncore
from hwprof.analysis.attribution import Attribution
from hwprof.analysis.layer_types import layer_type_table
from hwprof.analysis.layers import Figures
from hwprof.run.manifest import PassRecord
from hwprof.run.process_events import COVERAGE_EVENTS


@dataclass(frozen=True)
class Counted:
    """Figures without metrics, of which ``counters`` and ``uncounted`` are these counts', and whose they are."""

    record: PassRecord
    calls: pl.DataFrame  # as ``Attribution`` has them
    layers: Figures
    layer_types: Figures
    stages: Figures


def instrumented_counts(
    record: PassRecord,
    spans: pl.DataFrame,
    counts: pl.DataFrame,
    counted: Attribution,
    timed: Attribution,
    modules: pl.DataFrame,
) -> Counted | None:
    """The counters of the pass's own events; ``spans`` and ``counts`` are its rows, and ``counted`` what they come to.
    None where there are none.

    Of a pass that was interrupted, those of whole layers.
    """
    own = pl.col("event").is_in([*(event.name for event in record.events), *COVERAGE_EVENTS])
    counts, counted = counts.filter(own), replace(counted, counts=counted.counts.filter(own))
    if counts.is_empty():
        return None
    if record.status != "completed":
        counted, counts = instrumented.whole_layers(counted, timed), counts.clear()
    return Counted(
        record,
        counted.calls,
        layers.layer_table(modules, counted, (), None),
        layer_type_table(modules, counted, (), None),
        stages.stage_table(spans, counts, record, counted.iterations, (), None),
    )


def further_operands(traffic: pl.DataFrame, others: Figures | None, cycles: pl.DataFrame | None) -> pl.DataFrame:
    """The operands by owner that do not come from the pass itself: DRAM traffic, others' counters, sampled cycles."""
    found = uncore.operands(traffic)
    counters = others.counters if others is not None else pl.DataFrame()
    for further in (None if counters.is_empty() else summary.as_operands(counters), cycles):
        if further is not None:
            found = found.join(further, on="owner", how="full", coalesce=True)
    return found


def with_counters(found: Figures, others: Figures | None) -> Figures:
    """The figures with the counters of others beside their own."""
    if others is None:
        return found
    owned = others.counters.join(found.rows.select("owner"), on="owner", how="semi")
    owned = others.counters if owned.height == others.counters.height else owned  # a row a layer and event, held once
    both = pl.concat([found.counters, owned.select(found.counters.columns)])
    return replace(found, counters=both, uncounted=others.uncounted)
