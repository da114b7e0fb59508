"""A sequence of packets in a trace: stamped by an incremental clock of its own, and with strings that it interned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt

from hwprof.trace import packets, protobuf_columns
from hwprof.trace.interning import Interned
from hwprof.trace.protobuf_columns import Column, Varint
from hwprof.trace.varint import varint

Ints: TypeAlias = npt.NDArray[np.int64]


class PacketSequence:
    """Packets of one kind in the order of their times: one by one, or many at once by the column."""

    def __init__(self, file: BinaryIO, number: int, defaults: bytes) -> None:
        """``defaults`` are fields of TracePacketDefaults, which hold for every packet."""
        self._file = file
        self._defaults = defaults
        self._interned = Interned()
        self._time_ns: int | None = None
        self._identity = packets.number(packets.SEQUENCE_ID, number)
        self._start = self._identity + packets.number(packets.SEQUENCE_FLAGS, packets.NEEDS_STATE)

    def _write_packet(self, time_ns: int, field: bytes, body: bytes) -> None:
        """One packet with the message ``body`` in the field with that tag."""
        before = self._begin_at(time_ns)
        if time_ns < before:
            raise ValueError(f"the event at {time_ns} ns comes after one at {before} ns")
        self._file.write(
            packets.packet(
                self._start,
                self._interned.take(),
                packets.TIMESTAMP,
                varint(time_ns - before),
                field,
                varint(len(body)),
                body,
            )
        )
        self._time_ns = time_ns

    def _write_encoded(self, times_ns: Sequence[int], field: bytes, bodies: Sequence[bytes]) -> None:
        """A packet for each body; strings that they interned come before all of them."""
        if not times_ns:
            return
        before = self._begin_at(times_ns[0])
        if new := self._interned.take():
            self._file.write(packets.packet(self._start, new))
        head, parts = self._start + packets.TIMESTAMP, list[bytes]()
        for time_ns, body in zip(times_ns, bodies, strict=True):
            if time_ns < before:
                raise ValueError(f"the event at {time_ns} ns comes after one at {before} ns")
            inner = head + varint(time_ns - before) + field + varint(len(body)) + body
            parts += packets.PACKET, varint(len(inner)), inner
            before = time_ns
        self._file.write(b"".join(parts))
        self._time_ns = before

    def _write_packets(self, time_ns: Ints, field: bytes, body: Sequence[Column]) -> None:
        """A packet for each row of ``body``."""
        rows = len(time_ns)
        before = self._begin_at(int(time_ns[0]))
        deltas = np.diff(time_ns, prepend=before)
        if int(deltas.min()) < 0:
            raise ValueError("events out of order: a time is smaller than the one before")
        inner: list[Column] = [Varint(self._start + packets.TIMESTAMP, deltas)]
        inner += protobuf_columns.message(field, body, rows)
        encoded = protobuf_columns.join(protobuf_columns.message(packets.PACKET, inner, rows), rows)
        if new := self._interned.take():
            self._file.write(packets.packet(self._start, new))
        self._file.write(encoded.data)
        self._time_ns = int(time_ns[-1])

    def _begin_at(self, time_ns: int) -> int:
        """The time of the last packet; before the first one, starts the sequence and its clock at ``time_ns``."""
        if self._time_ns is None:
            self._file.write(
                packets.packet(
                    self._identity,
                    packets.number(packets.SEQUENCE_FLAGS, packets.STATE_CLEARED | packets.NEEDS_STATE),
                    packets.sequence_defaults(packets.CLOCK_INCREMENTAL, self._defaults),
                    packets.clock_snapshot(
                        {packets.CLOCK_INCREMENTAL: time_ns, packets.CLOCK_MONOTONIC: time_ns},
                        incremental=frozenset({packets.CLOCK_INCREMENTAL}),
                    ),
                )
            )
            self._time_ns = time_ns
        return self._time_ns
