"""The tracks of a pass in the trace: their names, groups and order. Names contain the pass, for pinned tracks."""

from __future__ import annotations

from functools import partial
from typing import Final

import polars as pl

from hwprof.run.manifest import PassRecord
from hwprof.trace.encoder import EventSequence, TraceEncoder
from hwprof.trace.slices import SliceTrack

FINDING: Final = "finding"
LAYER: Final = "layer"
PRIMITIVE: Final = "primitive"
OPERATOR: Final = "op"
PYTHON: Final = "python"
KERNEL: Final = "kernel"
RATES: Final = "event rates"
OVER_TIME: Final = "over time"
FINDINGS: Final = "findings"
ORDER: Final = ("iteration", "region", "stage", FINDINGS, LAYER, PRIMITIVE, OPERATOR, PYTHON, KERNEL, RATES, OVER_TIME)
"""What stands on a pass's tracks, from top to bottom; the groups of series follow."""

TITLES: Final = {
    "iteration": "iterations",
    "region": "regions",
    "stage": "stages",
    LAYER: "layers",
    PRIMITIVE: "oneDNN primitives",
    OPERATOR: "operators",
    PYTHON: "Python functions",
    KERNEL: "kernels",
}
_LANES: Final = 1000  # ranks between two kinds of tracks
_FINDING_LANES: Final = 100  # ranks between two findings


class Tracks:
    """The tracks of one pass, which is a process of the trace."""

    def __init__(
        self, record: PassRecord, pid: int, workload: str, threads: pl.DataFrame, writer: TraceEncoder
    ) -> None:
        """``pid`` is the process's number in the trace; ``threads`` are the pass's rows of that table."""
        self._record, self._writer = record, writer
        process = writer.process(pid, f"{record.name} pass - {workload} (pid {record.pid or '?'})")
        self._group = writer.track(f"{record.name} pass", process, ordered=True)
        self._thread_names = dict(threads.select("tid", "name").iter_rows())
        for tid, name in self._thread_names.items():
            writer.thread(pid, tid, name)
        self._slices: dict[tuple[str, int], SliceTrack] = {}
        self._groups: dict[str, int] = {}
        self._counters = self._kernels = 0

    @property
    def extra_tracks(self) -> int:
        """How many tracks there are only because slices overlap."""
        return sum(track.lanes - 1 for track in self._slices.values())

    def slices(self, kind: str, tid: int) -> SliceTrack:
        """The track of one kind of spans on a thread; the same for the same thread."""
        if (kind, tid) not in self._slices:
            self._slices[kind, tid] = SliceTrack(partial(self._lane, kind, tid))
        return self._slices[kind, tid]

    def open_slices(self) -> list[SliceTrack]:
        """Every such track that there is."""
        return list(self._slices.values())

    def finding(self, number: int, rule: str) -> SliceTrack:
        """A new track for what a rule found, in a group of their own; ``number``: its place among them, from 1."""
        title = f"{FINDING} {number}: {rule.replace('_', ' ')}"
        return SliceTrack(partial(self._finding_lane, title, number * _FINDING_LANES))

    def kernels(self, tid: int) -> EventSequence:
        """A new track for what a thread ran: below the operators, the main thread's first."""
        self._kernels += 1
        return self._lane(KERNEL, tid, 0, 0 if tid == self._record.main_tid else self._kernels)

    def counter(
        self, group: str, name: str, unit: str, *, share_axis: str | None = None, description: str = ""
    ) -> EventSequence:
        """A new track for values, in a group of that name."""
        self._counters += 1
        parent, title = self._subgroup(group), named(name, self._record)
        track = self._writer.counter(
            title, parent, unit=unit, rank=self._counters, share_axis=share_axis, description=description
        )
        return self._writer.sequence(track)

    def _subgroup(self, name: str) -> int:
        if name not in self._groups:
            rank = _rank(name) if name in ORDER else _rank("") + len(self._groups)
            self._groups[name] = self._writer.track(name, self._group, rank=rank, ordered=True)
        return self._groups[name]

    def _lane(self, kind: str, tid: int, number: int, place: int | None = None) -> EventSequence:
        title = TITLES.get(kind, kind)
        if kind == OPERATOR or tid != self._record.main_tid:
            title += f" of {self._thread_names.get(tid) or 'thread'} {tid}"
        rank = _rank(kind) + (number if place is None else place)
        return self._sequence(title, number, self._group, rank)

    def _finding_lane(self, title: str, rank: int, number: int) -> EventSequence:
        return self._sequence(title, number, self._subgroup(FINDINGS), rank + number)

    def _sequence(self, title: str, number: int, group: int, rank: int) -> EventSequence:
        """Of the track with that title, or of the one beside it of that ``number``."""
        title = named(f"{title} (overlap {number})" if number else title, self._record)
        return self._writer.sequence(self._writer.track(title, group, rank=rank))


def named(title: str, record: PassRecord) -> str:
    """A track's full name: a pinned one does not show which process it belongs to."""
    return f"{title} ({record.name})"


def _rank(kind: str) -> int:
    return (ORDER.index(kind) if kind in ORDER else len(ORDER)) * _LANES
