"""A pass's samples in the trace: call stacks for flame graphs, and what each thread ran as slices below its layers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import Any, Final

import polars as pl

from hwprof.analysis.team import team
from hwprof.run.details import SamplingDetail
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import PassRecord
from hwprof.run.schema import TABLES
from hwprof.trace import kernel_slices
from hwprof.trace.call_stacks import CallStacks, callers_of, numbers_of
from hwprof.trace.encoder import EventSequence, TraceEncoder
from hwprof.trace.flame_roots import ROOTS, FlameRoots
from hwprof.trace.flows import FlowNumbers
from hwprof.trace.frames import UNKNOWN, Code, File, Key, Place, keys_of
from hwprof.trace.kernel_slices import OPENMP, SLICES, WAITING
from hwprof.trace.perf_samples import MODES, Samples, SampleSequence, cumulative
from hwprof.trace.python_samples import PythonSamples
from hwprof.trace.time_windows import Window, windows

FOLLOWERS: Final = {"instructions": "instructions", "llc_misses": "llc-misses"}
"""Columns of what was counted beside the sampled event, and its name."""


class SampleTracks:
    """Writes the samples of one pass, window by window."""

    def __init__(
        self,
        run: RunDirectory,
        record: PassRecord,
        pid: int,
        writer: TraceEncoder,
        python_frames: pl.DataFrame,
        add_track: Callable[[int], EventSequence],
    ) -> None:
        """``pid`` is the process's number in the trace; ``python_frames``: as ``python_stacks.of_pipeline`` leaves
        them; ``add_track`` makes a thread's track of kernels."""
        self._record, self._pid, self._writer, self._add_track = record, pid, writer, add_track
        self._samples, self._switches = (_all_columns(run, table, record) for table in ("samples", "switches"))
        self._callers = callers_of(_all_columns(run, "stacks", record).collect())
        kernels = run.of_pass("kernels", record.name)
        self._code = Code(run.of_pass("mappings", record.name), kernels)
        outer = run.scan_pass("spans", record.name).filter(pl.col("kind").is_in(["iteration", "stage"])).collect()
        of_team = team(self._samples, kernels.lazy(), self._switches)
        self._roots = FlameRoots(outer, run.read("layers"), record, of_team)
        self._python = PythonSamples(run, python_frames, record, pid, self._code, self._callers, writer)
        self._followers = self._counted()
        self._streams: dict[str, _Stream] = {}
        self._tracks: dict[int, EventSequence] = {}
        self._open = pl.DataFrame(schema=SLICES)  # each thread's last slice, which may go on
        self._edge = pl.DataFrame(schema={"edge": pl.Int64, "layer": pl.Int64})  # the last one so far
        found = (collector.detail_as(SamplingDetail) for collector in record.collectors)
        self._detail = next((detail for detail in found if detail is not None), None)
        self.samples = self.slices = 0

    def write(
        self, spans: pl.DataFrame, leaves: pl.DataFrame, window: Window, flows: FlowNumbers
    ) -> dict[int, list[int]]:
        """Writes what was sampled within a window, and returns the flows that begin at each leaf layer, by span.

        ``spans`` are those that begin in it; ``leaves`` (``span``, ``begin_ns``, ``end_ns``) the leaf layers of the
        main thread among them: they end in it, too.
        """
        edges = pl.concat([self._edge, kernel_slices.edges_of(leaves)])
        self._edge = edges.tail(1)
        sources: dict[int, list[int]] = {}
        for part in self._parts(window, leaves):
            samples = self._within(self._samples, pl.col("time_ns"), part).sort("time_ns", maintain_order=True)
            switches = self._within(self._switches, pl.coalesce("out_ns", "in_ns"), part)
            self._write_samples(samples.hstack(self._roots.of(samples, spans, part[1])))
            self._python.write(samples)
            spans = spans.clear()
            found = kernel_slices.slices(self._described(samples), switches, edges, self._open)
            found, begun = kernel_slices.link(found, self._record.main_tid, flows)
            for layer, numbers in begun.items():
                sources.setdefault(layer, []).extend(numbers)
            last = pl.col("tid").is_last_distinct()
            self._open = found.filter(last)
            self._write_slices(found.filter(~last))
        return sources

    def finish(self) -> None:
        """Writes what is still open, and what was lost."""
        self._write_slices(self._open)
        lost = self._detail.lost if self._detail is not None else 0
        if lost and self._streams:
            next(iter(self._streams.values())).sequence.lost(self._record.end_ns or 0, lost)

    def _parts(self, window: Window, leaves: pl.DataFrame) -> list[Window]:
        inside = self._samples.filter(pl.col("time_ns").is_between(*window, closed="left"))
        cuts = [since for since, _ in windows(inside, "time_ns", unsplit=leaves.lazy())][1:]
        return list(zip([window[0], *cuts], [*cuts, window[1]], strict=True))

    def _within(self, table: pl.LazyFrame, time: pl.Expr, window: Window) -> pl.DataFrame:
        return table.filter(time.is_between(*window, closed="left")).collect(engine="streaming")

    def _write_samples(self, samples: pl.DataFrame) -> None:
        for (event,), rows in samples.partition_by("event", as_dict=True, maintain_order=True).items():
            if event not in self._streams:
                frequency_hz = self._detail.frequency_hz if self._detail is not None else None
                sequence = self._writer.samples(event, frequency_hz, list(self._followers.values()))
                stacks = CallStacks(sequence.interned, self._code, self._callers)
                self._streams[event] = _Stream(sequence, stacks, list(self._followers))
            self._streams[event].write(rows, self._record.pid, self._pid)
        self.samples += len(samples)

    def _described(self, samples: pl.DataFrame) -> pl.DataFrame:
        """With ``name``, ``category``, ``library`` and ``full_name`` of what ran."""
        keys = keys_of(samples)
        distinct = keys.unique(maintain_order=True)
        labels = pl.DataFrame(
            [self._label(Key(*row)) for row in distinct.iter_rows()],
            schema={name: SLICES[name] for name in ("name", "category", "library", "full_name")},
            orient="row",
        )
        # nulls are equal here: a sample without a kernel goes by its address
        known = keys.join(
            pl.concat([distinct, labels], how="horizontal"),
            on=keys.columns,
            how="left",
            nulls_equal=True,
            maintain_order="left",
        )
        return pl.concat([samples, known.select(labels.columns)], how="horizontal")

    def _label(self, key: Key) -> tuple[str, str, str, str | None]:
        place = self._code.place(key)
        library = PurePath(place.file.path).name
        if place.domain == OPENMP:
            return "waiting (OpenMP)", WAITING, library, None
        if key.kernel is None:
            return (library if library not in (UNKNOWN, "") else UNKNOWN), place.domain, library, None
        return place.name, place.domain, library, place.full_name

    def _write_slices(self, found: pl.DataFrame) -> None:
        for (tid,), rows in sorted(found.partition_by("tid", as_dict=True).items()):
            if tid not in self._tracks:
                self._tracks[tid] = self._add_track(tid)
            kernel_slices.write(self._tracks[tid], rows)
        self.slices += len(found)

    def _counted(self) -> dict[str, str]:
        """The followers that were read with any sample."""
        counts = self._samples.select(pl.col(list(FOLLOWERS)).count()).collect().row(0, named=True)
        return {column: name for column, name in FOLLOWERS.items() if counts[column]}


class _Stream:
    """The samples of one event, and how much each processor counted so far."""

    def __init__(self, sequence: SampleSequence, stacks: CallStacks, followers: list[str]) -> None:
        self.sequence, self._stacks = sequence, stacks
        self._sums: dict[str, dict[int, int]] = {column: {} for column in ("period", *followers)}

    def write(self, rows: pl.DataFrame, own_pid: int | None, pid: int) -> None:
        """``own_pid`` is shown as ``pid``."""
        keys = rows.select(*ROOTS, "stack").hstack(keys_of(rows))
        cpu = rows["cpu"].cast(pl.Int64).to_numpy()
        timebase, *followers = (
            cumulative(rows[column].fill_null(0).to_numpy(), cpu, sums) for column, sums in self._sums.items()
        )
        self.sequence.write(
            Samples(
                time_ns=rows["time_ns"].to_numpy(),
                cpu=cpu,
                pid=rows["pid"].cast(pl.Int64).replace({own_pid: pid}).to_numpy(),
                tid=rows["tid"].cast(pl.Int64).to_numpy(),
                call_stack=numbers_of(keys, self._number).to_numpy(),
                mode=rows["domain"].replace_strict(MODES, default=0, return_dtype=pl.Int64).to_numpy(),
                timebase=timebase,
                followers=followers,
            )
        )

    def _number(self, *row: Any) -> int:
        """``row``: the names of ``ROOTS``, the stack of the callers, and the columns of ``Key``."""
        names, (stack, *key) = row[: len(ROOTS)], row[len(ROOTS) :]
        named = [(kind, name) for kind, name in zip(ROOTS, names, strict=True) if name is not None]
        roots = [Place(name, File(f"[{kind}]"), 0) for kind, name in named]
        return self._stacks.number(stack, Key(*key), roots)


def _all_columns(run: RunDirectory, table: str, record: PassRecord) -> pl.LazyFrame:
    """Of the pass, with all the table's columns: runs of older versions have no names, and no reasons of switches."""
    frame = run.scan_pass(table, record.name)
    known = frame.collect_schema().names()
    return frame.with_columns(
        pl.lit(None, kind).alias(name) for name, kind in TABLES[table].items() if name not in known
    )
