"""Annotations of slices: layer, counts by thread, and derived metrics; shown by the UI when a slice is selected."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import polars as pl

from hwprof.run.manifest import IterationRecord, PassRecord
from hwprof.run.schema import WHOLE_PROCESS_TID
from hwprof.trace.annotations import SharedAnnotations
from hwprof.trace.slice_metrics import MetricValues

_LAYER_FACTS: Final = ("index", "type", "parameters", "calls")
"""Columns of the layers table; ``calls`` are those of one iteration."""

_CALL_FACTS: Final = ("input_shapes", "output_shapes", "macs", "bytes")
"""Columns of the layer_calls table: of the very call that a slice shows."""


class Count(NamedTuple):
    """A row of the counts table, without the span that it belongs to."""

    tid: int
    event: str
    value: int
    enabled_ns: int
    running_ns: int
    provenance: str


SpanCounts = Mapping[int, list[Count]]


class Known(NamedTuple):
    """What is known of spans beside their own rows, by span."""

    counts: SpanCounts
    derived: Mapping[int, MetricValues]


def by_span(counts: pl.DataFrame) -> SpanCounts:
    """The counts of each span."""
    found: dict[int, list[Count]] = defaultdict(list)
    rows = counts.select(*Count._fields).iter_rows()
    for span, count in zip(counts["span"].to_list(), map(Count._make, rows), strict=True):
        found[span].append(count)
    return found


class SliceAnnotations:
    """Annotations of the spans of one pass."""

    def __init__(
        self,
        record: PassRecord,
        threads: pl.DataFrame,
        layers: pl.DataFrame,
        calls: pl.DataFrame,
        executed: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> None:
        """``executed``: by a layer's path, its primitives."""
        self._iterations: dict[int, IterationRecord] = {entry.index: entry for entry in record.iterations}
        self._event_sets = record.event_sets
        self._main = {record.main_tid, *threads.filter(role="main")["tid"].to_list()}
        self._layers = {row["path"]: row for row in layers.iter_rows(named=True)}
        self._calls = {(row["path"], row["call"]): row for row in calls.iter_rows(named=True)}
        self._executed = executed
        self._layer_facts: dict[tuple[str, int | None], SharedAnnotations] = {}
        self._provenances: dict[tuple[tuple[str, str], ...], SharedAnnotations] = {}

    def of(self, span: Mapping[str, Any], counts: list[Count], derived: MetricValues) -> dict[str, Any]:
        """The annotations of one row of the spans table, with what follows from its counts."""
        facts: dict[str, Any] = {"span": span["span"], "iteration": span["iteration"], "warmup": span["warmup"]}
        if span["kind"] == "layer" and span["path"] in self._layers:
            facts["layer"] = self._layer(span["path"], span["call"])
        if span["input_shapes"]:
            facts["input_shapes"] = span["input_shapes"]
        if span["kind"] == "iteration" and span["iteration"] in self._iterations:
            facts |= self._iteration(self._iterations[span["iteration"]])
        if counts:
            facts |= self._counts(counts)
        if derived:
            facts["derived"] = derived
        return facts

    def _layer(self, path: str, call: int | None) -> SharedAnnotations:
        """What is known of a layer and of this call of it; the same object for the same call."""
        if (path, call) not in self._layer_facts:
            layer, asked = self._layers[path], self._calls.get((path, call), {})
            known = {column: layer[column] for column in _LAYER_FACTS} | {name: asked.get(name) for name in _CALL_FACTS}
            self._layer_facts[path, call] = SharedAnnotations(known | {"onednn": self._executed.get(path)})
        return self._layer_facts[path, call]

    def _iteration(self, record: IterationRecord) -> dict[str, Any]:
        events = self._event_sets[record.event_set] if record.event_set is not None else None
        return {"layers_counted": record.layers_counted, "event_set": record.event_set, "events": events}

    def _counts(self, counts: list[Count]) -> dict[str, Any]:
        total: dict[str, int] = defaultdict(int)
        main: dict[str, int] = defaultdict(int)
        workers: dict[str, int] = defaultdict(int)
        by_worker: dict[str, dict[int, int]] = defaultdict(dict)
        sources: dict[str, set[str]] = defaultdict(set)
        for count in counts:
            total[count.event] += count.value
            sources[count.event].add(count.provenance)
            if count.tid in self._main:
                main[count.event] += count.value
            elif count.tid != WHOLE_PROCESS_TID:
                workers[count.event] += count.value
                by_worker[count.event][count.tid] = count.value
        several = any(len(values) > 1 for values in by_worker.values())
        groups: dict[str, dict[str, Any]] = {
            "counts": total,
            "main": main,
            "workers": workers,
            "worker": by_worker if several else {},
            "running_share": {event: share for event, share in running_shares(counts).items() if share < 1},
            "provenance": self._provenance(sources),
        }
        return {name: group for name, group in groups.items() if group}

    def _provenance(self, sources: Mapping[str, set[str]]) -> SharedAnnotations:
        """How each event was counted; the same object for the same answer."""
        entries = tuple((event, ", ".join(sorted(kinds))) for event, kinds in sources.items())
        return self._provenances.setdefault(entries, SharedAnnotations(entries))


def running_shares(counts: list[Count]) -> dict[str, float]:
    """The share of the time that each event's counters were on the processor's registers; 0: it was never counted."""
    enabled: dict[str, int] = defaultdict(int)
    running: dict[str, int] = defaultdict(int)
    for count in counts:
        enabled[count.event] += count.enabled_ns
        running[count.event] += count.running_ns
    return {event: running[event] / time_ns for event, time_ns in enabled.items() if time_ns}
