"""Names and annotations of slices: what is known of layer and call; shown by the UI when a slice is selected.

An annotation is an argument of SQL's: its name, and each part of it, is a name that SQL takes without quotation marks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import polars as pl

from hwprof.run.manifest import PassRecord
from hwprof.trace.analysed import NOTHING, Analysed
from hwprof.trace.annotations import SharedAnnotations
from hwprof.trace.encoder import EventSequence
from hwprof.trace.iteration_slices import IterationSlices
from hwprof.trace.slice_figures import SliceFigures
from hwprof.trace.slice_metrics import PLAIN, MetricOrigins

COLUMNS: Final = ("span", "iteration", "warmup", "kind", "path", "call", "input_shapes")
"""Of the spans table: all that annotations are made of."""

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
        "left_out_of_medians", "preemptions", "waited_ms", "stolen_ms", "own_ms", "alone_for", "time_budget",
        "roofline",
    }
)  # fmt: skip
"""Names that no metric takes: those of the arguments here."""


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
        self.figures = SliceFigures({record.main_tid, *threads.filter(role="main")["tid"]}, OWN, origins)
        self._layers = {row["path"]: row for row in layers.iter_rows(named=True)}
        self._calls = {(row["path"], row["call"]): row for row in calls.iter_rows(named=True)}
        self._executed, self._analysed = executed, analysed.of_pass(record)
        self._layer_facts: dict[tuple[str, int | None], SharedAnnotations] = {}

    def name(self, span: Mapping[str, Any]) -> str:
        """What the slice of a row of the spans table is called."""
        if span["kind"] == "iteration":
            return self._iterations.name(span["path"], span["iteration"])
        return span["path"] or NAMELESS

    def of(self, span: Mapping[str, Any]) -> dict[str, Any]:
        """The annotations of one row of the spans table, but for ``figures``."""
        return {"span": span["span"], **self._of_iteration(span), **self._of_place(span)}

    def encoder(self, sequence: EventSequence) -> Callable[[tuple[Any, ...]], bytes]:
        """How a slice (its ``COLUMNS``) begins in a sequence: name, category and the same, encoded: what many slices
        share once."""
        encode, alike = sequence.annotations.encode, not self._analysed.arguments  # in the warm-up and after it
        by_iteration: dict[tuple[Any, ...], bytes] = {}
        by_place: dict[tuple[Any, ...], tuple[bytes, bytes]] = {}

        def encoded(span: tuple[Any, ...]) -> bytes:
            iteration, place = span[1:3], span[2:]
            if place[1] == "iteration":
                place = span[1:]
            elif alike:
                place = span[3:]
            if place not in by_place:
                row = dict(zip(COLUMNS, span, strict=True))
                by_place[place] = sequence.beginning(self.name(row), row["kind"]), encode(self._of_place(row))
            if iteration not in by_iteration:
                by_iteration[iteration] = encode(self._of_iteration(dict(zip(COLUMNS, span, strict=True))))
            beginning, of_place = by_place[place]
            return beginning + sequence.annotations.integer("span", span[0]) + by_iteration[iteration] + of_place

        return encoded

    def _of_iteration(self, span: Mapping[str, Any]) -> dict[str, Any]:
        number = span["iteration"]
        return {"iteration": number, "warmup": span["warmup"], "disturbed": self._iterations.disturbed(number)}

    def _of_place(self, span: Mapping[str, Any]) -> dict[str, Any]:
        facts: dict[str, Any] = {}
        if not span["warmup"]:  # of which no figure is
            facts |= self._analysed.arguments.get((span["kind"], span["path"]), {})
        if span["kind"] == "layer" and span["path"] in self._layers:
            facts["layer"] = self._layer(span["path"], span["call"])
        if span["input_shapes"]:
            facts["input_shapes"] = span["input_shapes"]
        if span["kind"] == "iteration":
            facts |= self._iterations.annotations(span["iteration"])
        return facts

    def _layer(self, path: str, call: int | None) -> SharedAnnotations:
        """What is known of a layer and of this call of it; the same object for the same call."""
        if (path, call) not in self._layer_facts:
            layer, asked = self._layers[path], self._calls.get((path, call), {})
            known = {name: layer[column] for name, column in _LAYER_FACTS.items()}
            known |= {name: asked.get(name) for name in _CALL_FACTS} | {"onednn": self._executed.get(path)}
            self._layer_facts[path, call] = SharedAnnotations(known)
        return self._layer_facts[path, call]
