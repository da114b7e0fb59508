"""The document's part on passes that counted by following the code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from hwprof.analysis import instrumented, layers, overhead
from hwprof.analysis.attribution import UNATTRIBUTED, WHOLE, attribute
from hwprof.report.document import metrics as described
from hwprof.report.document import rows
from hwprof.report.document.schema import Event, Followed, Kernel
from hwprof.report.text import figures
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import MetricDefinition, PassRecord

PER_LAYER: Final = 5
"""Kernels of a layer in the document; the table ``kernel_counts`` has all."""

INSTRUCTIONS: Final = ".instructions"


@dataclass(frozen=True)
class Found:
    """What a pass counted: for the document, and of every kernel in every layer, as ``analysis.followed.kernels``."""

    record: PassRecord
    described: Followed
    kernels: pl.DataFrame


def find(run: RunDirectory, modules: pl.DataFrame) -> list[Found]:
    """One for each kept pass whose times are another's."""
    records = {record.name: record for record in run.kept_passes()}
    return [
        found
        for record in records.values()
        if record.times_from is not None and (found := _build(run, record, records.get(record.times_from), modules))
    ]


def _build(run: RunDirectory, record: PassRecord, companion: PassRecord | None, modules: pl.DataFrame) -> Found | None:
    machine = run.manifest.machine
    spans, counts = (_mine(run, table, record) for table in ("spans", "counts"))
    by_kernel, names = (_mine(run, table, record) for table in ("kernel_counts", "kernels"))
    counted = attribute(spans, counts, modules, record)
    apart = instrumented.why_apart(record, companion)
    timed, done = None, None
    notes = []
    if companion is not None and apart is None:
        timed = attribute(_mine(run, "spans", companion), counts.clear(), modules, companion)
        differing = instrumented.calls_differ(counted, timed)
        if record.status != "completed":
            counted = instrumented.whole_layers(counted, timed)
            done = counted.counts["owner"].unique().to_list()
            notes.append(f"{record.reason}: counts of {figures.plural(len(done), 'complete layer')}, no sums")
        elif differing:
            notes.append(
                f"{figures.plural(differing, 'layer')} called another number of times than in {companion.name}"
            )
    if record.status != "completed" and timed is None:
        return None  # which layers came to all of their calls is not known
    both = instrumented.joined(counted, timed)
    table = layers.layer_table(modules, both, record.metrics, record.threads)
    events = described.events(record.events, table.counters)
    if not events:
        return None
    leaves = {layer.path: layer for layer in rows.layers(table, overhead.counting_overhead(both), None, {})}
    unattributed, whole = leaves.pop(UNATTRIBUTED, None), leaves.pop(WHOLE, None)
    by_layer = instrumented.kernels(spans, by_kernel, names, modules, counted, done)
    found = Followed(
        name=record.name,
        status=record.status,
        times_from=record.times_from,
        apart=apart,
        instruction_set=record.instruction_set,
        threads=record.threads,
        environment=record.environment,
        notes=notes,
        events=events,
        metrics=described.metric_infos(record.metrics, table.operands, table.apart, events, record, machine),
        layers=list(leaves.values()),
        unattributed=unattributed,
        inference=whole,
        kernels=_kernels(by_layer, events, record.metrics),
    )
    return Found(record, found, by_layer)


def _mine(run: RunDirectory, table: str, record: PassRecord) -> pl.DataFrame:
    return run.scan(table).filter(pl.col("pass") == record.name).collect()


def _kernels(table: pl.DataFrame, events: Sequence[Event], metrics: Sequence[MetricDefinition]) -> list[Kernel]:
    """Those of the whole that are not small, and the largest of every layer, ranked by instructions."""
    ranked_by = next((event.name for event in events if event.name.endswith(INSTRUCTIONS)), None)
    keys = list(instrumented.KERNEL_KEYS)
    main = table.filter(event=ranked_by)
    waiting = pl.col("share").is_null()
    of_whole = main.filter(pl.col("layer").is_null() & (waiting | (pl.col("share") >= instrumented.SMALL)))
    working = main.filter(pl.col("layer").is_not_null() & ~waiting)
    large = pl.concat([of_whole, working.filter(pl.int_range(pl.len()).over("layer") < PER_LAYER)])
    provenances = dict(table.select("event", "provenance").unique().iter_rows())
    kept = table.join(large.select(keys), on=keys, how="semi", nulls_equal=True)
    counters: dict[tuple[str | None, ...], dict[str, float]] = {}
    for *key, event, value in kept.select(*keys, "event", "value").iter_rows():
        counters.setdefault(tuple(key), {})[event] = value
    derived = {
        tuple(row.pop(key) for key in keys): row
        for row in instrumented.kernel_metrics(kept, metrics).iter_rows(named=True)
    }
    found = []
    for row in large.select(*keys, "value", "share").iter_rows(named=True):
        owner: tuple[str | None, ...] = tuple(row[name] for name in keys)
        found.append(
            Kernel(
                **row,
                counters=counters[owner],
                metrics=derived[owner],
                provenance={name: provenances[name] for name in counters[owner]},
            )
        )
    return found
