"""Call stacks of one thread over time as packets: StreamingProfilePacket, with interned call stacks.

Field numbers are those of Perfetto's ``profile_packet.proto`` and ``thread_descriptor.proto``. Times are microseconds:
the packet has no finer ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO, Final

from hwprof.trace import packets
from hwprof.trace.interning import Interned
from hwprof.trace.packet_sequence import Ints
from hwprof.trace.varint import varint

THREAD_DESCRIPTOR: Final = 44
STREAMING_PROFILE: Final = 54  # of TracePacket
_CALL_STACK, _DELTA_US = (packets.tag(field, packets.VARINT) for field in (1, 2))

BATCH: Final = 4096
"""Samples in one packet."""


class ProfileSequence:
    """The stacks of one thread, in the order of their times."""

    def __init__(self, file: BinaryIO, number: int, pid: int, tid: int) -> None:
        self._file, self._pid, self._tid = file, pid, tid
        self.interned = Interned()
        """What call stacks are made of; what is new is written with the samples that follow."""
        self._identity = packets.number(packets.SEQUENCE_ID, number)
        self._time_us: int | None = None

    def write(self, time_ns: Ints, call_stacks: Sequence[int]) -> None:
        """Writes samples; raises ``ValueError`` where a time is smaller than the one before."""
        times_us = (time_ns // 1000).tolist()
        for start in range(0, len(times_us), BATCH):
            part = slice(start, start + BATCH)
            self._write(times_us[part], call_stacks[part])

    def _write(self, times_us: list[int], call_stacks: Sequence[int]) -> None:
        before_us = self._begin_at(times_us[0])
        body = [_CALL_STACK + varint(stack) for stack in call_stacks]
        for time_us in times_us:
            if time_us < before_us:
                raise ValueError(f"the sample at {time_us} us comes after one at {before_us} us")
            body.append(_DELTA_US + varint(time_us - before_us))
            before_us = time_us
        flags = packets.number(packets.SEQUENCE_FLAGS, packets.NEEDS_STATE)
        profile = packets.data(STREAMING_PROFILE, b"".join(body))
        self._file.write(packets.packet(self._identity, flags, self.interned.take(), profile))
        self._time_us = before_us

    def _begin_at(self, time_us: int) -> int:
        """The time of the last sample; before the first one, says whose they are and from when on they count."""
        if self._time_us is None:
            thread = packets.number(1, self._pid) + packets.number(2, self._tid) + packets.number(6, time_us)
            flags = packets.number(packets.SEQUENCE_FLAGS, packets.STATE_CLEARED)
            self._file.write(packets.packet(self._identity, flags, packets.data(THREAD_DESCRIPTOR, thread)))
            self._time_us = time_us
        return self._time_us
