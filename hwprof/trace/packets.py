"""The few Perfetto messages that hwprof writes one at a time, as bytes.

Field numbers are those of Perfetto's ``trace_packet.proto``, ``track_descriptor.proto``, ``track_event.proto``,
``debug_annotation.proto`` and ``clock_snapshot.proto``.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

from hwprof.trace.varint import varint

VARINT: Final = 0
FIXED64: Final = 1
LENGTH: Final = 2

CLOCK_REALTIME: Final = 1
CLOCK_MONOTONIC: Final = 3
CLOCK_MONOTONIC_RAW: Final = 5
CLOCK_BOOTTIME: Final = 6
CLOCK_INCREMENTAL: Final = 64  # 64 to 127 belong to the packet sequence that snapshots them

STATE_CLEARED: Final = 1
NEEDS_STATE: Final = 2


class EventType(IntEnum):
    """TrackEvent.Type"""

    BEGIN = 1
    END = 2
    INSTANT = 3
    COUNTER = 4


def tag(field: int, wire: int) -> bytes:
    """The key before a field's value."""
    return varint(field << 3 | wire)


def number(field: int, value: int) -> bytes:
    """An integer field (uint, int, enum or bool)."""
    return varint(field << 3) + varint(value)


def double(field: int, value: float) -> bytes:
    """A double field."""
    return tag(field, FIXED64) + struct.pack("<d", value)


def fixed64(field: int, value: int) -> bytes:
    """A fixed64 field."""
    return tag(field, FIXED64) + struct.pack("<Q", value)


def data(field: int, value: bytes) -> bytes:
    """A bytes field, or an embedded message that is encoded already."""
    return tag(field, LENGTH) + varint(len(value)) + value


def text(field: int, value: str) -> bytes:
    """A string field; what UTF-8 cannot say is replaced."""
    return data(field, value.encode("utf-8", "replace"))


PACKET: Final = tag(1, LENGTH)  # Trace.packet

# TracePacket
TIMESTAMP: Final = tag(8, VARINT)
SEQUENCE_ID: Final = 10
TRACK_EVENT: Final = tag(11, LENGTH)
INTERNED_DATA: Final = 12
SEQUENCE_FLAGS: Final = 13
CLOCK_SNAPSHOT: Final = 6
TIMESTAMP_CLOCK_ID: Final = 58
PACKET_DEFAULTS: Final = 59
TRACK_DESCRIPTOR: Final = 60
SERVICE_EVENT: Final = 69

# TrackEvent
EVENT_CATEGORY: Final = tag(3, VARINT)
EVENT_ANNOTATION: Final = tag(4, LENGTH)
EVENT_TYPE: Final = tag(9, VARINT)
EVENT_NAME: Final = tag(10, VARINT)
EVENT_TRACK: Final = 11
EVENT_COUNTER: Final = tag(30, VARINT)
EVENT_DOUBLE_COUNTER: Final = tag(44, FIXED64)
EVENT_FLOW: Final = tag(47, FIXED64)
EVENT_TERMINATING_FLOW: Final = tag(48, FIXED64)

# DebugAnnotation
ANNOTATION_NAME: Final = 1
ANNOTATION_BOOL: Final = 2
ANNOTATION_INT: Final = 4
ANNOTATION_DOUBLE: Final = 5
ANNOTATION_STRING: Final = 6
ANNOTATION_DICT: Final = 11
ANNOTATION_ARRAY: Final = 12
ANNOTATION_STRING_IID: Final = 17


def packet(*fields: bytes) -> bytes:
    """One TracePacket as an entry of the trace."""
    body = b"".join(fields)
    return PACKET + varint(len(body)) + body


def service_ended() -> bytes:
    """TracePacket.service_event.tracing_disabled: whoever recorded has come to the end."""
    return data(SERVICE_EVENT, number(5, 1))


def clock_snapshot(clocks: dict[int, int], *, incremental: frozenset[int] = frozenset(), primary: int = 0) -> bytes:
    """TracePacket.clock_snapshot: what each clock (by id) reads, in nanoseconds, at one moment."""
    readings = b"".join(
        data(1, number(1, clock) + number(2, time_ns) + (number(3, 1) if clock in incremental else b""))
        for clock, time_ns in clocks.items()
    )
    return data(CLOCK_SNAPSHOT, readings + (number(2, primary) if primary else b""))


def sequence_defaults(clock: int, defaults: bytes) -> bytes:
    """TracePacket.trace_packet_defaults: the clock of every packet of a sequence that names no other, and more."""
    return data(PACKET_DEFAULTS, number(TIMESTAMP_CLOCK_ID, clock) + defaults)


def track_default(track_uuid: int) -> bytes:
    """TracePacketDefaults.track_event_defaults: the track of every event."""
    return data(11, number(EVENT_TRACK, track_uuid))


def process(pid: int, name: str) -> bytes:
    """TrackDescriptor.process"""
    return data(3, number(1, pid) + text(6, name))


def thread(pid: int, tid: int, name: str) -> bytes:
    """TrackDescriptor.thread"""
    return data(4, number(1, pid) + number(2, tid) + text(5, name))


def counter(unit: str, share_axis: str | None = None) -> bytes:
    """TrackDescriptor.counter: without it, a counter track's values vanish without a word."""
    return data(8, text(6, unit) + (text(7, share_axis) if share_axis else b""))


def track_descriptor(
    uuid: int,
    *,
    parent: int = 0,
    name: str = "",
    description: str = "",
    rank: int | None = None,
    ordered: bool = False,
    kind: bytes = b"",
) -> bytes:
    """TracePacket.track_descriptor.

    ``rank`` is the place among siblings, which holds where the parent is ``ordered``; ``kind`` is ``process``,
    ``thread`` or ``counter``. Tracks of the same name are not merged.
    """
    fields = [number(1, uuid)]
    if parent:
        fields.append(number(5, parent))
    if name:
        fields.append(text(2, name))
    if description:
        fields.append(text(14, description))
    if ordered:
        fields.append(number(11, 3))  # EXPLICIT
    if rank is not None:
        fields.append(number(12, rank))
    fields += [number(15, 2), kind]  # SIBLING_MERGE_BEHAVIOR_NONE
    return data(TRACK_DESCRIPTOR, b"".join(fields))
