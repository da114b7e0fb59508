"""Our own Perfetto encoder: a stream of packets into a file, whole columns of events at a time.

Small because names are interned and the clock is incremental (each event carries the time since the one before), fast
because events are encoded by the column; nothing but the current batch is held in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hwprof.trace import packets, protobuf_columns
from hwprof.trace.annotations import Annotations
from hwprof.trace.interning import Table
from hwprof.trace.packet_sequence import Ints, PacketSequence
from hwprof.trace.packets import EventType
from hwprof.trace.perf_samples import SampleSequence
from hwprof.trace.profile_sequence import ProfileSequence
from hwprof.trace.protobuf_columns import Column, Constant, Fixed64, Varint
from hwprof.trace.varint import varint

if TYPE_CHECKING:
    from hwprof.run.manifest import ClockSnapshot

Numbers: TypeAlias = npt.NDArray[np.uint32]
Flows: TypeAlias = npt.NDArray[np.uint64]

BATCH_ROWS: Final = 16_384
"""Events encoded at once: the matrices of a batch stay in a core's own cache."""

DESCRIPTOR_SEQUENCE: Final = 1

END: Final = packets.packet(packets.service_ended(), packets.number(packets.SEQUENCE_ID, DESCRIPTOR_SEQUENCE))
"""How a whole trace ends."""


@dataclass(frozen=True)
class Events:
    """Columns of events of one track, in the order in which they are to be read: times never fall.

    Names, categories and annotation values are numbers that the sequence's ``names``, ``categories`` and ``strings``
    gave out, 0 where an event has none. Flow 0 is none, too.
    """

    time_ns: Ints
    type: npt.NDArray[np.uint8]
    """``EventType`` of each event."""
    name: Numbers | None = None
    category: Numbers | None = None
    annotations: Mapping[str, Numbers] = field(default_factory=dict)
    """Annotation name -> string of each event."""
    flow: Flows | None = None
    terminating_flow: Flows | None = None
    value: npt.NDArray[np.int64] | npt.NDArray[np.float64] | None = None
    """Of counter events."""
    figures: Mapping[str, npt.NDArray[np.int64] | npt.NDArray[np.float64]] = field(default_factory=dict)
    """Annotation name -> number of each event; one that is below zero or NaN is none."""

    def __len__(self) -> int:
        return len(self.time_ns)

    def rows(self, start: int, stop: int) -> Events:
        """A run of the events; a view, not a copy."""

        def cut(column: Any) -> Any:
            return None if column is None else column[start:stop]

        return Events(
            self.time_ns[start:stop],
            self.type[start:stop],
            cut(self.name),
            cut(self.category),
            {name: column[start:stop] for name, column in self.annotations.items()},
            cut(self.flow),
            cut(self.terminating_flow),
            cut(self.value),
            {name: column[start:stop] for name, column in self.figures.items()},
        )


class TraceEncoder:
    """A Perfetto trace on its way into a file object; the file is the caller's to open and close."""

    def __init__(self, file: BinaryIO, clock: ClockSnapshot) -> None:
        """``clock`` ties CLOCK_MONOTONIC, in which all events are stamped, to the trace's clock, BOOTTIME."""
        self._file = file
        self._tracks = 0
        self._sequences = DESCRIPTOR_SEQUENCE
        readings = {
            packets.CLOCK_BOOTTIME: clock.boottime_ns,
            packets.CLOCK_MONOTONIC: clock.monotonic_ns,
            packets.CLOCK_MONOTONIC_RAW: clock.monotonic_raw_ns,
            packets.CLOCK_REALTIME: clock.realtime_ns,
        }
        self._packet(packets.clock_snapshot(readings, primary=packets.CLOCK_BOOTTIME))

    def end(self) -> None:
        """Nothing follows: a trace that does not end with ``END`` has been cut."""
        self._file.write(END)

    def process(self, pid: int, name: str) -> int:
        """A process, which groups what is below it in the tree; returns its track's number."""
        return self._describe(kind=packets.process(pid, name))

    def thread(self, pid: int, tid: int, name: str) -> int:
        """A thread of a process that has been described."""
        return self._describe(kind=packets.thread(pid, tid, name))

    def track(self, name: str, parent: int, *, rank: int | None = None, ordered: bool = False) -> int:
        """A track for slices, or a group of tracks; ``ordered``: its children stand in the order of their ranks."""
        return self._describe(parent=parent, name=name, rank=rank, ordered=ordered)

    def counter(
        self,
        name: str,
        parent: int,
        *,
        unit: str,
        rank: int | None = None,
        share_axis: str | None = None,
        description: str = "",
    ) -> int:
        """A track for values; counters with the same ``share_axis`` are drawn to one scale."""
        kind = packets.counter(unit, share_axis)
        return self._describe(parent=parent, name=name, description=description, rank=rank, kind=kind)

    def sequence(self, track: int) -> EventSequence:
        """A new packet sequence, whose events belong to ``track``."""
        self._sequences += 1
        return EventSequence(self._file, self._sequences, track)

    def samples(self, event: str, frequency_hz: int | None, followers: Sequence[str]) -> SampleSequence:
        """A new packet sequence for samples that ``event`` triggered; ``followers`` are the events counted beside."""
        self._sequences += 1
        return SampleSequence(self._file, self._sequences, event, frequency_hz, followers)

    def profile(self, pid: int, tid: int) -> ProfileSequence:
        """A new packet sequence for call stacks of one thread."""
        self._sequences += 1
        return ProfileSequence(self._file, self._sequences, pid, tid)

    def _describe(self, **fields: Any) -> int:
        self._tracks += 1
        self._packet(packets.track_descriptor(self._tracks, **fields))
        return self._tracks

    def _packet(self, body: bytes) -> None:
        self._file.write(packets.packet(packets.number(packets.SEQUENCE_ID, DESCRIPTOR_SEQUENCE), body))


class EventSequence(PacketSequence):
    """The events of one track: by the column with ``write``, or one by one with any annotations."""

    def __init__(self, file: BinaryIO, number: int, track: int) -> None:
        super().__init__(file, number, packets.track_default(track))
        self.annotations = Annotations(self._interned)

    def names(self, values: Iterable[str | None]) -> Numbers:
        """The numbers of event names, for ``Events.name``."""
        return self._interned.numbers(Table.NAMES, values)

    def categories(self, values: Iterable[str | None]) -> Numbers:
        """The numbers of categories, for ``Events.category``."""
        return self._interned.numbers(Table.CATEGORIES, values)

    def strings(self, values: Iterable[str | None]) -> Numbers:
        """The numbers of annotation values, for ``Events.annotations``."""
        return self._interned.numbers(Table.STRINGS, values)

    def write(self, events: Events) -> None:
        """Writes columns of events; raises ``ValueError`` where a time is smaller than the one before."""
        for start in range(0, len(events), BATCH_ROWS):
            self._write_batch(events.rows(start, start + BATCH_ROWS))

    def begin(
        self,
        time_ns: int,
        name: str,
        *,
        category: str | None = None,
        annotations: Mapping[str, Any] | None = None,
        flows: Sequence[int] = (),
        terminating_flows: Sequence[int] = (),
    ) -> None:
        """Begins a slice; annotations are numbers, booleans, strings, and sequences and mappings of those."""
        known = self.annotations.encode(annotations) if annotations else b""
        self._event(time_ns, self.beginning(name, category) + known + flow_fields(flows, terminating_flows))

    def beginning(self, name: str, category: str | None = None) -> bytes:
        """What begins the event that begins a slice, for ``write_encoded``: annotations and flows follow."""
        fields = _TYPE[EventType.BEGIN] + packets.EVENT_NAME + varint(self._interned.number(Table.NAMES, name))
        if category is None:
            return fields
        return fields + packets.EVENT_CATEGORY + varint(self._interned.number(Table.CATEGORIES, category))

    def write_encoded(self, times_ns: Sequence[int], events: Sequence[bytes]) -> None:
        """Writes events that are encoded; raises ``ValueError`` where a time is smaller than the one before."""
        self._write_encoded(times_ns, packets.TRACK_EVENT, events)

    def end(self, time_ns: int) -> None:
        """Ends the slice begun last that is still open."""
        self._event(time_ns, SLICE_END)

    def count(self, time_ns: int, value: int | float) -> None:
        """A counter's value from now on."""
        if isinstance(value, int):
            self._event(time_ns, _TYPE[EventType.COUNTER] + packets.EVENT_COUNTER + varint(value))
        else:
            self._event(time_ns, _TYPE[EventType.COUNTER] + packets.double(44, value))

    def _event(self, time_ns: int, body: bytes) -> None:
        self._write_packet(time_ns, packets.TRACK_EVENT, body)

    def _write_batch(self, events: Events) -> None:
        self._write_packets(events.time_ns, packets.TRACK_EVENT, self._body(events))

    def _body(self, events: Events) -> list[Column]:
        """The fields of TrackEvent."""
        body: list[Column] = [Varint(packets.EVENT_TYPE, events.type)]
        for tag, numbers in ((packets.EVENT_NAME, events.name), (packets.EVENT_CATEGORY, events.category)):
            if numbers is not None and numbers.any():
                body.append(Varint(tag, numbers, numbers != 0))
        for name, strings in events.annotations.items():
            if (present := strings != 0).any():
                tag = packets.tag(packets.ANNOTATION_STRING_IID, packets.VARINT)
                body += self._annotation(name, Varint(tag, strings, present), present)
        for name, figures in events.figures.items():
            if (present := figures >= 0).any():
                body += self._annotation(name, _figure(figures, present), present)
        for tag, flows in (
            (packets.EVENT_FLOW, events.flow),
            (packets.EVENT_TERMINATING_FLOW, events.terminating_flow),
        ):
            if flows is not None and flows.any():
                body.append(Fixed64(tag, flows, flows != 0))
        if events.value is not None:
            present = events.type == EventType.COUNTER
            if events.value.dtype.kind == "f":
                body.append(Fixed64(packets.EVENT_DOUBLE_COUNTER, events.value, present))
            else:
                body.append(Varint(packets.EVENT_COUNTER, events.value, present))
        return body

    def _annotation(self, name: str, value: Column, present: npt.NDArray[np.bool_]) -> list[Column]:
        key = packets.number(packets.ANNOTATION_NAME, self._interned.number(Table.ANNOTATION_NAMES, name))
        inner: list[Column] = [Constant(key, present), value]
        return protobuf_columns.message(packets.EVENT_ANNOTATION, inner, len(present), present)


def _figure(figures: npt.NDArray[np.int64] | npt.NDArray[np.float64], present: npt.NDArray[np.bool_]) -> Column:
    if figures.dtype.kind == "f":
        return Fixed64(packets.tag(packets.ANNOTATION_DOUBLE, packets.FIXED64), figures, present)
    return Varint(packets.tag(packets.ANNOTATION_INT, packets.VARINT), figures, present)


_TYPE: Final = {kind: packets.EVENT_TYPE + varint(kind) for kind in EventType}

SLICE_END: Final = _TYPE[EventType.END]
"""The event that ends the slice begun last that is still open, for ``write_encoded``."""


def flow_fields(flows: Sequence[int], terminating: Sequence[int]) -> bytes:
    """Of an event that these begin or end at."""
    fields = [packets.fixed64(47, flow) for flow in flows]
    return b"".join(fields + [packets.fixed64(48, flow) for flow in terminating])
