"""What one instrumented pass counted: its layers, with the times of the same work uninstrumented, and its kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from hwprof.analysis import instrumented, layers, overhead, summary
from hwprof.analysis.attribution import attribute
from hwprof.run.manifest import PassRecord

PER_LAYER: Final = 5
"""Kernels of a layer that are listed; the table ``kernel_counts`` has all."""

INSTRUCTIONS: Final = ".instructions"


@dataclass(frozen=True)
class InstrumentedPass:
    """A pass's figures, and of every kernel in every layer what it counted, as ``instrumented.kernels``."""

    record: PassRecord
    not_comparable: str | None  # why there are no times
    notes: list[str]
    figures: layers.Figures
    events: list[dict[str, Any]]  # as ``summary.events``
    counting: pl.DataFrame  # as ``overhead.counting_overhead``
    kernels: pl.DataFrame

    def listed(self) -> list[dict[str, Any]]:
        """The kernels of the whole that are not small, and the largest of every layer, ranked by instructions: the
        columns of ``instrumented.KERNEL_KEYS``, ``instructions``, ``share``, and by event and metric ``counters``,
        ``metrics``, ``provenance``."""
        by = next((event["name"] for event in self.events if event["name"].endswith(INSTRUCTIONS)), None)
        keys = list(instrumented.KERNEL_KEYS)
        if by is None:  # nothing counted instructions: there is no order
            return []
        main = self.kernels.filter(event=by)
        waiting = pl.col("share").is_null()
        of_whole = main.filter(pl.col("layer").is_null() & (waiting | (pl.col("share") >= instrumented.SMALL)))
        working = main.filter(pl.col("layer").is_not_null() & ~waiting)
        large = pl.concat([of_whole, working.filter(pl.int_range(pl.len()).over("layer") < PER_LAYER)])
        provenances = dict(self.kernels.select("event", "provenance").unique().iter_rows())
        kept = self.kernels.join(large.select(keys), on=keys, how="semi", nulls_equal=True)
        counters: dict[tuple[str | None, ...], dict[str, float]] = {}
        for *key, event, value in kept.select(*keys, "event", "value").iter_rows():
            counters.setdefault(tuple(key), {})[event] = value
        derived = {
            tuple(row.pop(key) for key in keys): row
            for row in instrumented.kernel_metrics(kept, self.record.metrics).iter_rows(named=True)
        }
        found = []
        for row in large.select(*keys, "share", instructions="value").iter_rows(named=True):
            owner = tuple(row[name] for name in keys)
            provenance = {name: provenances[name] for name in counters[owner]}
            found.append({**row, "counters": counters[owner], "metrics": derived[owner], "provenance": provenance})
        return found


def instrumented_pass(
    record: PassRecord,
    companion: PassRecord | None,
    tables: Mapping[str, pl.DataFrame],
    timed_spans: pl.DataFrame | None,
    modules: pl.DataFrame,
) -> InstrumentedPass | None:
    """``tables``: the pass's own rows; ``timed_spans``: its companion's, which did the same work uninstrumented.

    None where nothing was counted, or where it is not known which layers came to all of their calls.
    """
    spans, counts = tables["spans"], tables["counts"]
    counted = attribute(spans, counts, modules, record, disturbed_too=True)
    not_comparable = instrumented.why_not_comparable(record, companion)
    timed, done = None, None
    notes = []
    if companion is not None and timed_spans is not None and not_comparable is None:
        timed = attribute(timed_spans, counts.clear(), modules, companion)
        differing = instrumented.calls_differ(counted, timed)
        if record.status != "completed":
            counted = instrumented.whole_layers(counted, timed)
            done = counted.counts["owner"].unique().to_list()
            notes.append(f"{record.reason}: counts of {_layers(len(done), 'complete layer')}, no sums")
        elif differing:
            notes.append(f"{_layers(differing)} called another number of times than in {companion.name}")
    if record.status != "completed" and timed is None:
        return None
    both = instrumented.joined(counted, timed)
    figures = layers.layer_table(modules, both, record.metrics, record.threads)
    events = summary.events(figures.counters)
    if not events:
        return None
    kernels = instrumented.kernels(spans, tables["kernel_counts"], tables["kernels"], modules, counted, done)
    return InstrumentedPass(record, not_comparable, notes, figures, events, overhead.counting_overhead(both), kernels)


def _layers(number: int, noun: str = "layer") -> str:
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"
