"""Names and annotations of slices: layer, metrics and counts by thread; shown by the UI when a slice is selected.

An annotation is an argument of SQL's: its name, and each part of it, is a name that SQL takes without quotation marks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import polars as pl

from hwprof.run.manifest import PassRecord
from hwprof.run.process_events import WHOLE_PROCESS_TID
from hwprof.trace.analysed import NOTHING, Analysed
from hwprof.trace.annotations import SharedAnnotations
from hwprof.trace.argument_names import ArgumentNames
from hwprof.trace.by_span import BySpan, none_by_span
from hwprof.trace.iteration_slices import IterationSlices
from hwprof.trace.slice_metrics import PLAIN, MetricOrigins, MetricValues

NAMELESS: Final = "(root)"
"""The name of the module that has none: the model itself."""

_LAYER_FACTS: Final = {"layout_index": "index", "type": "type", "parameters": "parameters", "calls": "calls"}
"""Columns of the layers table, by the argument's name (``index`` is a word of SQL's own); ``calls`` are those of one
iteration."""

_CALL_FACTS: Final = ("input_shapes", "output_shapes", "macs", "bytes")
"""Columns of the layer_calls table: of the very call that a slice shows."""

OWN: Final = frozenset(
    {
        "span", "iteration", "warmup", "disturbed", "layer", "input_shapes", "layers_counted", "event_set", "events",
        "left_out_of_medians", "preemptions", "waited_ms", "stolen_ms", "own_ms", "alone_for", "metric_provenance",
        "counts_pass", "counts", "main", "workers", "worker", "running_share", "provenance", "time_budget", "roofline",
    }
)  # fmt: skip
"""Names that no metric takes."""


class Count(NamedTuple):
    """A row of the counts table, without the span that it belongs to."""

    tid: int
    event: str
    value: int
    enabled_ns: int
    running_ns: int
    provenance: str


class Known(NamedTuple):
    """What is known of spans beside their own rows, by span."""

    counts: BySpan[Count]
    derived: BySpan[MetricValues]


def counts_by_span(counts: pl.DataFrame) -> BySpan[Count]:
    """The counts of each span."""
    return BySpan(counts.select("span", *Count._fields), Count._make)


def nothing_known() -> Known:
    """Of no span."""
    return Known(none_by_span(), none_by_span())


class SliceAnnotations:
    """Annotations of the spans of one pass."""

    def __init__(
        self,
        record: PassRecord,
        threads: pl.DataFrame,
        layers: pl.DataFrame,
        calls: pl.DataFrame,
        executed: Mapping[str, Sequence[str]] = MappingProxyType({}),
        origins: MetricOrigins = PLAIN,
        analysed: Analysed = NOTHING,
    ) -> None:
        """``executed``: by a layer's path, its primitives; ``origins``: of the metrics; ``analysed``: of the run."""
        self._iterations = IterationSlices(record.iterations, record.event_sets)
        self._event_names, self._metric_names = ArgumentNames(), ArgumentNames(OWN)
        self._origins = origins
        self._main = {record.main_tid, *threads.filter(role="main")["tid"].to_list()}
        self._alone = {*self._main, WHOLE_PROCESS_TID}
        self._layers = {row["path"]: row for row in layers.iter_rows(named=True)}
        self._calls = {(row["path"], row["call"]): row for row in calls.iter_rows(named=True)}
        self._executed, self._analysed = executed, analysed.of_pass(record)
        self._layer_facts: dict[tuple[str, int | None], SharedAnnotations] = {}
        self._provenances: dict[tuple[tuple[str, str], ...], SharedAnnotations] = {}

    def name(self, span: Mapping[str, Any]) -> str:
        """What the slice of a row of the spans table is called."""
        if span["kind"] == "iteration":
            return self._iterations.name(span["path"], span["iteration"])
        return span["path"] or NAMELESS

    def of(self, span: Mapping[str, Any], counts: list[Count], derived: MetricValues) -> dict[str, Any]:
        """The annotations of one row of the spans table, with what follows from its counts."""
        number = span["iteration"]
        facts: dict[str, Any] = {"span": span["span"], "iteration": number, "warmup": span["warmup"]}
        facts["disturbed"] = self._iterations.disturbed(number)
        if not span["warmup"]:  # of which no figure is
            facts |= self._analysed.arguments.get((span["kind"], span["path"]), {})
        if span["kind"] == "layer" and span["path"] in self._layers:
            facts["layer"] = self._layer(span["path"], span["call"])
        if span["input_shapes"]:
            facts["input_shapes"] = span["input_shapes"]
        if span["kind"] == "iteration":
            facts |= self._iterations.annotations(number)
        if derived:
            facts |= self._metrics(derived)
        if counts:
            facts |= self._counts(counts)
        return facts

    def _layer(self, path: str, call: int | None) -> SharedAnnotations:
        """What is known of a layer and of this call of it; the same object for the same call."""
        if (path, call) not in self._layer_facts:
            layer, asked = self._layers[path], self._calls.get((path, call), {})
            known = {name: layer[column] for name, column in _LAYER_FACTS.items()}
            known |= {name: asked.get(name) for name in _CALL_FACTS} | {"onednn": self._executed.get(path)}
            self._layer_facts[path, call] = SharedAnnotations(known)
        return self._layer_facts[path, call]

    def _metrics(self, derived: MetricValues) -> dict[str, Any]:
        """The metrics by name, and what is to be known of where they come from."""
        facts: dict[str, Any] = {self._metric_names.of(name): value for name, value in derived.items()}
        known = self._origins.by_metric
        kinds = [(self._metric_names.of(name), known[name]) for name in derived if name in known]
        if kinds:
            facts["metric_provenance"] = self._shared(kinds)
        if self._origins.joined.intersection(derived):
            facts["counts_pass"] = self._origins.counts_pass
        return facts

    def _counts(self, counts: list[Count]) -> dict[str, Any]:
        name = self._event_names.of
        if all(count.tid in self._alone for count in counts):
            total = {name(count.event): count.value for count in counts}
            if len(total) == len(counts):  # each once: as of most slices
                main = {name(count.event): count.value for count in counts if count.tid != WHOLE_PROCESS_TID}
                kinds = ((name(count.event), count.provenance) for count in counts)
                groups = {"counts": total, "main": main, **self._running(counts), "provenance": self._shared(kinds)}
                return groups if main else {key: group for key, group in groups.items() if key != "main"}
        return self._counts_by_thread(counts)

    def _counts_by_thread(self, counts: list[Count]) -> dict[str, Any]:
        total: dict[str, int] = defaultdict(int)
        main: dict[str, int] = defaultdict(int)
        workers: dict[str, int] = defaultdict(int)
        by_worker: dict[str, dict[str, int]] = defaultdict(dict)
        sources: dict[str, set[str]] = defaultdict(set)
        for count in counts:
            event = self._event_names.of(count.event)
            total[event] += count.value
            sources[event].add(count.provenance)
            if count.tid in self._main:
                main[event] += count.value
            elif count.tid != WHOLE_PROCESS_TID:
                workers[event] += count.value
                by_worker[event][f"tid_{count.tid}"] = count.value
        several = any(len(values) > 1 for values in by_worker.values())
        groups: dict[str, dict[str, Any]] = {
            "counts": total,
            "main": main,
            "workers": workers,
            "worker": by_worker if several else {},
            **self._running(counts),
            "provenance": self._shared((event, ", ".join(sorted(kinds))) for event, kinds in sources.items()),
        }
        return {name: group for name, group in groups.items() if group}

    def _running(self, counts: list[Count]) -> dict[str, Any]:
        """The events that were not counted all the time, if there are any."""
        if all(count.running_ns >= count.enabled_ns for count in counts):
            return {}
        shares = running_shares(counts).items()
        return {"running_share": {self._event_names.of(event): share for event, share in shares if share < 1}}

    def _shared(self, entries: Iterable[tuple[str, str]]) -> SharedAnnotations:
        """The same object for the same entries."""
        key = tuple(entries)
        return self._provenances.setdefault(key, SharedAnnotations(key))


def running_shares(counts: list[Count]) -> dict[str, float]:
    """The share of the time that each event's counters were on the processor's registers; 0: it was never counted."""
    enabled: dict[str, int] = defaultdict(int)
    running: dict[str, int] = defaultdict(int)
    for count in counts:
        enabled[count.event] += count.enabled_ns
        running[count.event] += count.running_ns
    return {event: running[event] / time_ns for event, time_ns in enabled.items() if time_ns}
