"""Traces read back with Perfetto's own protobuf classes, as plainly as can be."""

from __future__ import annotations

import io
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from hwprof.run.manifest import ClockSnapshot
from hwprof.trace.encoder import EventSequence, TraceEncoder
from tests.support.requirements import require_module

CLOCK = ClockSnapshot(
    boottime_ns=9_000_000_000, monotonic_ns=2_000_000_000, monotonic_raw_ns=1_999_000_000, realtime_ns=10**18
)


@dataclass
class Event:
    """A track event with its numbers replaced by what they stand for."""

    time_ns: int
    type: int
    track: int
    name: str | None = None
    category: str | None = None
    annotations: dict[str, Any] = field(default_factory=dict)
    flows: list[int] = field(default_factory=list)
    terminating_flows: list[int] = field(default_factory=list)
    value: int | float | None = None


def writer() -> tuple[io.BytesIO, TraceEncoder]:
    """A trace that is written into memory."""
    file = io.BytesIO()
    return file, TraceEncoder(file, CLOCK)


def sequence() -> tuple[io.BytesIO, EventSequence]:
    """A packet sequence on track 2, below process 1."""
    file, trace = writer()
    return file, trace.sequence(trace.track("track", trace.process(1, "process")))


def packets(file: io.BytesIO) -> list[Any]:
    """The trace's packets."""
    pb = require_module("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = pb.Trace()
    trace.ParseFromString(file.getvalue())
    return list(trace.packet)


def events(file: io.BytesIO) -> list[Event]:
    """The events in file order; checks on the way that nothing is used before it is defined."""
    decoded: list[Event] = []
    interned: dict[int, dict[str, dict[int, str]]] = {}
    clock: dict[int, int] = {}
    track: dict[int, int] = {}
    for packet in packets(file):
        source = packet.trusted_packet_sequence_id
        assert source, "each packet belongs to a sequence"
        if packet.sequence_flags & 1:
            assert source not in interned, "a sequence starts once"
            interned[source] = defaultdict(dict)
            assert packet.trace_packet_defaults.timestamp_clock_id == 64
            track[source] = packet.trace_packet_defaults.track_event_defaults.track_uuid
            readings = {reading.clock_id: reading for reading in packet.clock_snapshot.clocks}
            assert readings[64].is_incremental
            clock[source] = readings[3].timestamp
            assert readings[64].timestamp == clock[source]
        for table, entries in packet.interned_data.ListFields():
            for entry in entries:
                text = _text(entry)
                assert interned[source][table.name].setdefault(entry.iid, text) == text
        if packet.HasField("track_event"):
            assert packet.sequence_flags & 2
            clock[source] += packet.timestamp
            decoded.append(_event(packet.track_event, clock[source], track[source], interned[source]))
    return decoded


def _text(entry: Any) -> str:
    """Of an interned name or string; frames and mappings of samples have none, and no event asks for them."""
    return str(entry.name if hasattr(entry, "name") else entry.str.decode() if hasattr(entry, "str") else entry)


def _event(event: Any, time_ns: int, track: int, interned: dict[str, dict[int, str]]) -> Event:
    value = None
    if event.HasField("counter_value"):
        value = event.counter_value
    elif event.HasField("double_counter_value"):
        value = event.double_counter_value
    return Event(
        time_ns,
        event.type,
        track,
        interned["event_names"][event.name_iid] if event.name_iid else None,
        interned["event_categories"][event.category_iids[0]] if event.category_iids else None,
        {
            interned["debug_annotation_names"][entry.name_iid]: _value(entry, interned)
            for entry in event.debug_annotations
        },
        list(event.flow_ids),
        list(event.terminating_flow_ids),
        value,
    )


def _value(annotation: Any, interned: dict[str, dict[int, str]]) -> Any:
    if annotation.dict_entries:
        return {
            interned["debug_annotation_names"][entry.name_iid]: _value(entry, interned)
            for entry in annotation.dict_entries
        }
    if annotation.array_values:
        return [_value(entry, interned) for entry in annotation.array_values]
    kind = annotation.WhichOneof("value")
    value = getattr(annotation, kind)
    return interned["debug_annotation_string_values"][value] if kind == "string_value_iid" else value
