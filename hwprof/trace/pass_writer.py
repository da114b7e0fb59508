"""One pass of a run in the trace: a process, what happened on its threads, and its counters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
import polars as pl

from hwprof.analysis.large_tables import numbered, some_at_a_time
from hwprof.analysis.python_stacks import looks_of, of_pipeline, while_alive
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import PassRecord
from hwprof.run.tables import refuse_repeated
from hwprof.trace.analysed import Analysed
from hwprof.trace.counters import Rates
from hwprof.trace.encoder import EventSequence, Flows, TraceEncoder
from hwprof.trace.findings import write_findings
from hwprof.trace.flows import FlowNumbers, connect, started_in
from hwprof.trace.nesting import END_OF_TIME
from hwprof.trace.over_time import series_over_time, write_iteration_times
from hwprof.trace.primitives import Executed, write_primitives
from hwprof.trace.python_functions import write_python_functions
from hwprof.trace.sample_tracks import SampleTracks
from hwprof.trace.series import write_series
from hwprof.trace.slice_annotations import SliceAnnotations
from hwprof.trace.slice_figures import Known
from hwprof.trace.slice_metrics import slice_metrics_of
from hwprof.trace.slices import Placed, write_annotated, write_columns
from hwprof.trace.time_windows import Window, windows
from hwprof.trace.tracks import LAYER, OPERATOR, RATES, Tracks

NOT_COUNTED: Final = "while leaf layers ran that counted this event; 0 is shown where it was not counted"
"""Description of the tracks of rates: a counter track has no gaps."""

_LEAVES: Final = {"span": pl.Int64, "begin_ns": pl.Int64, "end_ns": pl.Int64}


class PassWriter:
    """Writes one pass."""

    def __init__(
        self,
        whole: RunDirectory,
        run: RunDirectory,
        record: PassRecord,
        pid: int,
        writer: TraceEncoder,
        executed: Executed,
        advance: Callable[[int], None],
    ) -> None:
        """``run`` is the ``whole`` one as far as its slices are shown; ``pid`` is the process's number in the trace;
        ``executed``: what layers do, see ``primitives``; ``advance`` gets the rows as they are written."""
        self._record, self._advance = record, advance
        self._whole = whole
        self._spans, self._counts = (run.scan_pass(name, record.name) for name in ("spans", "counts"))
        self._series = series_over_time(whole, run, record)
        self._spans_file = run.path / "spans.parquet"
        threads = run.of_pass("threads", record.name)
        self._layers = run.read("layers")
        calls = run.read("layer_calls")
        self._slice_metrics = slice_metrics_of(run, record, calls)
        origins = self._slice_metrics.origins
        self._annotations_with = partial(SliceAnnotations, record, threads, self._layers, calls, executed, origins)
        self._primitives = run.of_pass("primitives", record.name)
        self._python_frames = of_pipeline(
            while_alive(run.of_pass("python_frames", record.name), run.of_pass("lifetimes", record.name)),
            looks_of(record),
        )
        workload = run.manifest.workload
        name = workload.name if workload else run.manifest.name
        self._tracks = Tracks(record, pid, name, threads, writer)
        self._samples = SampleTracks(run, record, pid, writer, self._python_frames, self._tracks.kernels)
        self.slices = self.values = self.primitives = self.python_functions = self.findings = 0

    @property
    def extra_tracks(self) -> int:
        """How many tracks there are only because slices overlap."""
        return self._tracks.extra_tracks

    @property
    def samples(self) -> int:
        """How many samples were written."""
        return self._samples.samples

    @property
    def kernel_slices(self) -> int:
        """How many slices show what threads ran, or that they were off-CPU."""
        return self._samples.slices

    def write(self, flows: FlowNumbers, analysed: Analysed) -> None:
        """Writes the whole pass, one window of time after the other. ``analysed``: of the run."""
        annotations = self._annotations_with(analysed)
        rates = Rates(self._record, self._rate_track)
        layers = self._spans.filter(kind=LAYER)
        parts = windows(self._spans, "begin_ns", unsplit=layers)
        sampled = _endless(parts)  # samples come before the first span and after the last one, too
        for (since, until), window in zip(parts, sampled, strict=True):
            spans = self._spans.filter(pl.col("begin_ns").is_between(since, until, closed="left"))
            prepared = self._prepare(self._once(spans.collect(engine="streaming")))
            leaves = self._leaves(prepared.filter(tid=self._record.main_tid) if self._record.main_tid else prepared)
            workers = self._samples.write(prepared, leaves, window, flows)
            self._write_window(prepared, until, rates, flows, workers, annotations)
        nothing = pl.DataFrame(schema=self._spans.collect_schema())
        if not parts:
            self._samples.write(nothing, pl.DataFrame(schema=_LEAVES), (-END_OF_TIME, END_OF_TIME), flows)
        self._samples.finish()
        findings = analysed.of_pass(self._record).findings
        self.findings = write_findings(findings, self._spans, self._layers, self._tracks)
        self.primitives = write_primitives(self._primitives, self._record, self._tracks)
        self.python_functions = write_python_functions(self._python_frames, self._record, self._tracks)
        for track in self._tracks.open_slices():
            for placed in track.finish():
                write_columns(placed, nothing, np.empty(0, np.uint64))
        rates.finish()
        write_iteration_times(self._whole, self._record, self._tracks)
        self.values = write_series(self._series, self._tracks, self._advance)

    def _once(self, spans: pl.DataFrame) -> pl.DataFrame:
        """The spans; refused where one is there twice, which has the same time and so is among the same ones."""
        refuse_repeated(self._spans_file, "spans", spans)
        return spans

    def _prepare(self, spans: pl.DataFrame) -> pl.DataFrame:
        """With ``depth`` in the module tree, and ``ends_parent``: no length, and the parent ends there."""
        outer = spans.select(parent="span", outer_begin_ns="begin_ns", outer_end_ns="end_ns")
        return spans.join(outer, on="parent", how="left", maintain_order="left").with_columns(
            depth=pl.when(pl.col("path") == "").then(-1).otherwise(pl.col("path").str.count_matches(".", literal=True)),
            ends_parent=(
                (pl.col("end_ns") <= pl.col("begin_ns"))
                & (pl.col("outer_end_ns") == pl.col("begin_ns"))
                & (pl.col("outer_begin_ns") < pl.col("begin_ns"))
            ).fill_null(False),
        )

    def _write_window(
        self,
        spans: pl.DataFrame,
        until_ns: int,
        rates: Rates,
        flows: FlowNumbers,
        workers: dict[int, list[int]],
        annotations: SliceAnnotations,
    ) -> None:
        """``workers`` has the flows from a layer's span to the threads that work for it."""
        numbers = spans["span"]
        of_spans = self._counts.filter(pl.col("span").is_between(numbers.min(), numbers.max())).drop("pass")
        wanted = pl.col("span").is_in(numbers.implode())  # and no join, which would not keep the rows' order
        counts = of_spans.filter(wanted).collect(engine="streaming")
        counts = numbered(counts, "event", "provenance").sort("span", maintain_order=True)
        known = Known(counts, self._slice_metrics.derive(spans, counts))
        parts = {(kind, tid): rows for (kind, tid), rows in spans.partition_by("kind", "tid", as_dict=True).items()}
        sources: dict[int, dict[int, list[int]]] = {}
        operators: list[tuple[pl.DataFrame, list[Placed], Flows]] = []
        for tid in sorted(tid for kind, tid in parts if kind == OPERATOR):
            rows = parts[OPERATOR, tid]
            placed = self._tracks.slices(OPERATOR, tid).place(rows, until_ns)
            attached, sources[tid] = connect(placed, started_in(parts.get((LAYER, tid), spans.clear()), rows), flows)
            operators.append((rows, placed, attached))
        for kind, tid in sorted(key for key in parts if key[0] != OPERATOR):
            rows = parts[kind, tid]
            begin = _with_workers(sources.get(tid, {}), rows, workers) if kind == LAYER else {}
            for track in self._tracks.slices(kind, tid).place(rows, until_ns):
                write_annotated(track, rows, annotations, known, begin, target=False)
        for rows, placed, attached in operators:
            self._write_operators(rows, placed, attached, known, annotations)
        for leaves, of_leaves in some_at_a_time(self._leaves(spans).sort("begin_ns", "span"), counts):
            rates.add(leaves, of_leaves)
        self.slices += len(spans)
        self._advance(len(spans))

    def _write_operators(
        self, rows: pl.DataFrame, placed: list[Placed], flows: Flows, known: Known, annotations: SliceAnnotations
    ) -> None:
        """By the column, unless one of them was counted, too."""
        counted = bool(known.counts["span"].is_in(rows["span"].implode()).any())
        attached = {row: [int(flows[row])] for row in np.flatnonzero(flows).tolist()} if counted else {}
        for track in placed:
            if counted:
                write_annotated(track, rows, annotations, known, attached, target=True)
            else:
                write_columns(track, rows, flows)

    def _leaves(self, spans: pl.DataFrame) -> pl.DataFrame:
        """The spans of layers without layers below them."""
        layers = spans.filter(kind=LAYER)
        inner = self._layers.filter(~pl.col("leaf"))["path"].to_list()
        outer = layers["parent"].drop_nulls().unique().to_list()
        leaves = layers.filter(~pl.col("path").is_in(inner) & ~pl.col("span").is_in(outer))
        return leaves.select("span", "begin_ns", "end_ns")

    def _rate_track(self, name: str, unit: str) -> EventSequence:
        return self._tracks.counter(RATES, name, unit, description=NOT_COUNTED)


def _endless(parts: list[Window]) -> list[Window]:
    """The same windows, the first one from the beginning of time, the last one to its end."""
    cuts = [since for since, _ in parts[1:]]
    return list(zip([-END_OF_TIME, *cuts], [*cuts, END_OF_TIME], strict=True)) if parts else []


def _with_workers(
    sources: dict[int, list[int]], layers: pl.DataFrame, workers: dict[int, list[int]]
) -> dict[int, list[int]]:
    """The flows of layers by row, with those by span."""
    if not workers:
        return sources
    both = {row: list(flows) for row, flows in sources.items()}
    for row, span in enumerate(layers["span"].to_list()):
        if span in workers:
            both.setdefault(row, []).extend(workers[span])
    return both
