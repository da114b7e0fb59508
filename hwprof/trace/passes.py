"""One pass of a run in the trace: a process, what happened on its threads, and its counters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
import polars as pl

from hwprof.analysis import followed, uncore
from hwprof.analysis.metrics import CLOCKED, definitions, operands_of
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import Machine, MetricDefinition, PassRecord
from hwprof.trace.counters import Growth, Rates, write_values
from hwprof.trace.derived import Deriver, Joined
from hwprof.trace.encoder import EventSequence, Flows, TraceWriter
from hwprof.trace.facts import Facts, Known, by_span
from hwprof.trace.flows import FlowNumbers, connect, started_in
from hwprof.trace.nesting import END_OF_TIME
from hwprof.trace.samples import SampleTracks
from hwprof.trace.slices import Placed, SliceTrack, write_annotated, write_columns
from hwprof.trace.windows import Window, windows

OPERATOR: Final = "op"
LAYER: Final = "layer"
KERNEL: Final = "kernel"
RATES: Final = "event rates"
ORDER: Final = ("iteration", "region", "stage", LAYER, OPERATOR, KERNEL, RATES)
"""What stands on a pass's tracks, from top to bottom; the groups of series follow."""

NOT_COUNTED: Final = "while leaf layers ran that counted this event; 0 is shown where it was not counted"
"""What a track of rates says of itself: a counter track has no gaps."""

_TITLES: Final = {
    "iteration": "iterations",
    "region": "regions",
    "stage": "stages",
    LAYER: "layers",
    OPERATOR: "operators",
    KERNEL: "kernels",
}
_LEAVES: Final = {"span": pl.Int64, "begin_ns": pl.Int64, "end_ns": pl.Int64}
_LANES: Final = 1000  # ranks between two kinds of tracks


class PassTracks:
    """Writes one pass."""

    def __init__(
        self, run: RunDirectory, record: PassRecord, pid: int, writer: TraceWriter, advance: Callable[[int], None]
    ) -> None:
        """``pid`` is the process's number in the trace; ``advance`` is told of rows as they are written."""
        self._record, self._writer, self._advance = record, writer, advance
        mine = pl.col("pass") == record.name
        self._spans, self._counts, self._series = (
            run.scan(name).filter(mine) for name in ("spans", "counts", "series")
        )
        self._threads = run.scan("threads").filter(mine).collect()
        self._layers = run.read("layers")
        calls = run.read("layer_calls")
        self._facts = Facts(record, self._threads, self._layers, calls)
        workload = run.manifest.workload
        threads = workload.threads if workload else None
        other = followed.belonging(run.kept_passes(), record)
        definitions = _derivable(record, run.manifest.machine, other)
        self._deriver = Deriver(definitions, calls, threads, _joined(run, other) if other is not None else None)
        self._tracks: dict[tuple[str, int], SliceTrack] = {}
        self._thread_names = dict(self._threads.select("tid", "name").iter_rows())
        name = workload.name if workload else run.manifest.name
        process = writer.process(pid, f"{record.name} pass - {name} (pid {record.pid or '?'})")
        self._suffix = f" ({record.name})"  # a pinned track does not show which process it belongs to
        self._group = writer.track(f"{record.name} pass", process, ordered=True)
        self._groups: dict[str, int] = {}
        self.slices = self.values = self._counters = 0
        for tid, name in self._thread_names.items():
            writer.thread(pid, tid, name)
        self._samples = SampleTracks(run, record, pid, writer, self._kernel_track)
        self._kernel_tracks = 0

    @property
    def extra_tracks(self) -> int:
        """How many tracks there are only because slices overlap."""
        return sum(track.lanes - 1 for track in self._tracks.values())

    def write(self, flows: FlowNumbers) -> None:
        """Writes the whole pass, one window of time after the other."""
        rates = Rates(self._record, self._rate_track)
        layers = self._spans.filter(kind=LAYER)
        parts = windows(self._spans, "begin_ns", whole=layers)
        sampled = _endless(parts)  # samples come before the first span and after the last one, too
        for (since, until), window in zip(parts, sampled, strict=True):
            spans = self._spans.filter(pl.col("begin_ns").is_between(since, until, closed="left"))
            prepared = self._prepare(spans.collect(engine="streaming"))
            leaves = self._leaves(prepared.filter(tid=self._record.main_tid) if self._record.main_tid else prepared)
            workers = self._samples.write(leaves, window, flows)
            self._write_window(prepared, until, rates, flows, workers)
        if not parts:
            self._samples.write(pl.DataFrame(schema=_LEAVES), (-END_OF_TIME, END_OF_TIME), flows)
        self._samples.finish()
        for (kind, _), track in self._tracks.items():
            for placed in track.finish():
                if kind == OPERATOR:
                    write_columns(placed, pl.DataFrame(schema=self._spans.collect_schema()), np.empty(0, np.uint64))
                else:
                    write_annotated(placed, pl.DataFrame(), self._facts, Known({}, {}), {}, target=False)
        rates.finish()
        self._write_series()

    def _prepare(self, spans: pl.DataFrame) -> pl.DataFrame:
        """With ``depth`` in the module tree, and ``clings``: no length, and the parent ends there."""
        outer = spans.select(parent="span", outer_begin_ns="begin_ns", outer_end_ns="end_ns")
        return spans.join(outer, on="parent", how="left", maintain_order="left").with_columns(
            depth=pl.when(pl.col("path") == "").then(-1).otherwise(pl.col("path").str.count_matches(".", literal=True)),
            clings=(
                (pl.col("end_ns") <= pl.col("begin_ns"))
                & (pl.col("outer_end_ns") == pl.col("begin_ns"))
                & (pl.col("outer_begin_ns") < pl.col("begin_ns"))
            ).fill_null(False),
        )

    def _write_window(
        self, spans: pl.DataFrame, until_ns: int, rates: Rates, flows: FlowNumbers, workers: dict[int, list[int]]
    ) -> None:
        """``workers`` has the flows from a layer's span to the threads that work for it."""
        numbers = spans["span"]
        counts = (
            self._counts.filter(pl.col("span").is_between(numbers.min(), numbers.max()))
            .join(spans.lazy().select("span"), on="span", how="semi")
            .collect(engine="streaming")
        )
        known = Known(by_span(counts), self._deriver.derive(spans, counts))
        parts = {(kind, tid): rows for (kind, tid), rows in spans.partition_by("kind", "tid", as_dict=True).items()}
        sources: dict[int, dict[int, list[int]]] = {}
        operators: list[tuple[pl.DataFrame, list[Placed], Flows]] = []
        for tid in sorted(tid for kind, tid in parts if kind == OPERATOR):
            rows = parts[OPERATOR, tid]
            placed = self._track(OPERATOR, tid).place(rows, until_ns)
            attached, sources[tid] = connect(placed, started_in(parts.get((LAYER, tid), spans.clear()), rows), flows)
            operators.append((rows, placed, attached))
        for kind, tid in sorted(key for key in parts if key[0] != OPERATOR):
            rows = parts[kind, tid]
            begin = _with_workers(sources.get(tid, {}), rows, workers) if kind == LAYER else {}
            for track in self._track(kind, tid).place(rows, until_ns):
                write_annotated(track, rows, self._facts, known, begin, target=False)
        for rows, placed, attached in operators:
            self._write_operators(rows, placed, attached, known)
        rates.add(self._leaves(spans), counts)
        self.slices += len(spans)
        self._advance(len(spans))

    def _write_operators(self, rows: pl.DataFrame, placed: list[Placed], flows: Flows, known: Known) -> None:
        """By the column, unless one of them was counted, too."""
        counted = rows["span"].is_in(list(known.counts)).any()
        attached = {row: [int(flows[row])] for row in np.flatnonzero(flows).tolist()} if counted else {}
        for track in placed:
            if counted:
                write_annotated(track, rows, self._facts, known, attached, target=True)
            else:
                write_columns(track, rows, flows)

    def _leaves(self, spans: pl.DataFrame) -> pl.DataFrame:
        """The spans of layers without layers below them."""
        layers = spans.filter(kind=LAYER)
        inner = self._layers.filter(~pl.col("leaf"))["path"].to_list()
        outer = layers["parent"].drop_nulls().unique().to_list()
        leaves = layers.filter(~pl.col("path").is_in(inner) & ~pl.col("span").is_in(outer))
        return leaves.select("span", "begin_ns", "end_ns")

    def _write_series(self) -> None:
        names = self._series.select("name", "unit").unique().collect(engine="streaming").sort("name", "unit")
        for name, unit in names.iter_rows():
            series = self._series.filter(name=name, unit=unit)
            sequence = self._series_track(name, unit)
            growth = self._growth(name, unit)
            for since, until in windows(series, "time_ns"):
                rows = (
                    series.filter(pl.col("time_ns").is_between(since, until, closed="left")).sort("time_ns").collect()
                )
                known = rows.drop_nulls("value")
                time_ns, values = known["time_ns"].to_numpy(), known["value"].to_numpy()
                write_values(sequence, time_ns, values)
                if growth:
                    growth.add(time_ns, values)
                self.values += len(known)
                self._advance(len(rows))
            if growth:
                growth.finish()

    def _growth(self, name: str, unit: str) -> Growth | None:
        """What a cumulative series grows by has a track of its own."""
        source, _, rest = name.partition("/")
        if unit == "J":
            return Growth(self._series_track(f"power/{rest or source}", "W"))
        if name.startswith(uncore.PREFIX) and unit == "B":
            return Growth(self._series_track(f"traffic/{rest}", "GB/s"), 1e-9)
        return None

    def _series_track(self, name: str, unit: str) -> EventSequence:
        return self._counter(name.partition("/")[0], name, unit, share_axis=unit)

    def _rate_track(self, name: str, unit: str) -> EventSequence:
        return self._counter(RATES, name, unit, description=NOT_COUNTED)

    def _counter(
        self, group: str, name: str, unit: str, share_axis: str | None = None, description: str = ""
    ) -> EventSequence:
        parent = self._subgroup(group)
        self._counters += 1
        track = self._writer.counter(
            name + self._suffix, parent, unit=unit, rank=self._counters, share_axis=share_axis, description=description
        )
        return self._writer.sequence(track)

    def _subgroup(self, name: str) -> int:
        if name not in self._groups:
            rank = _rank(name) if name == RATES else _rank("") + len(self._groups)
            self._groups[name] = self._writer.track(name, self._group, rank=rank, ordered=True)
        return self._groups[name]

    def _kernel_track(self, tid: int) -> EventSequence:
        """Below the operators: the main thread's first."""
        self._kernel_tracks += 1
        return self._add_lane(KERNEL, tid, 0, 0 if tid == self._record.main_tid else self._kernel_tracks)

    def _track(self, kind: str, tid: int) -> SliceTrack:
        if (kind, tid) not in self._tracks:
            self._tracks[kind, tid] = SliceTrack(partial(self._add_lane, kind, tid))
        return self._tracks[kind, tid]

    def _add_lane(self, kind: str, tid: int, number: int, place: int | None = None) -> EventSequence:
        title = _TITLES.get(kind, kind)
        if kind == OPERATOR or tid != self._record.main_tid:
            title += f" of {self._thread_names.get(tid, 'thread')} {tid}"
        if number:
            title += f" (overlap {number})"
        rank = _rank(kind) + (number if place is None else place)
        return self._writer.sequence(self._writer.track(title + self._suffix, self._group, rank=rank))


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


def _rank(kind: str) -> int:
    return (ORDER.index(kind) if kind in ORDER else len(ORDER)) * _LANES


def _derivable(record: PassRecord, machine: Machine, joined: PassRecord | None) -> tuple[MetricDefinition, ...]:
    """The metrics of a pass's slices: where its work took long because the code was followed, none that a time goes
    into; of what is ``joined`` with its times, only such: the others stand in that pass's own slices."""
    found = definitions(record, machine, joined)
    clocked = [metric for metric in found if CLOCKED.intersection(operands_of(metric))]
    if record.times_from is not None:
        return tuple(metric for metric in found if metric not in clocked)
    elsewhere = joined.metrics if joined is not None else []
    return tuple(metric for metric in found if metric in clocked or metric not in elsewhere)


def _joined(run: RunDirectory, record: PassRecord) -> Joined:
    mine = pl.col("pass") == record.name
    events = [event.name for event in record.events]
    counts = run.scan("counts").filter(mine & pl.col("event").is_in(events)).collect()
    return Joined(record.name, followed.by_call(run.scan("spans").filter(mine).collect(), counts))
