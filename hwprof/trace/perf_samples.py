"""Samples as packets: PerfSample by the column, with interned call stacks.

Field numbers are those of Perfetto's ``profile_packet.proto``, ``profile_common.proto`` and ``perf_events.proto``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final

import numpy as np

from hwprof.trace import packets
from hwprof.trace.interning import Interned
from hwprof.trace.packet_sequence import Ints, PacketSequence
from hwprof.trace.protobuf_columns import Column, Varint

BATCH_ROWS: Final = 16_384

PERF_SAMPLE: Final = packets.tag(66, packets.LENGTH)  # TracePacket
_DEFAULTS: Final = 12  # TracePacketDefaults.perf_sample_defaults
_CPU, _PID, _TID, _CALL_STACK, _MODE, _TIMEBASE, _FOLLOWER = (
    packets.tag(field, packets.VARINT) for field in range(1, 8)
)
_LOST: Final = 17

_COUNTERS: Final = {"cpu-clock": 1, "cycles": 10, "instructions": 11, "llc-misses": 13}
"""PerfEvents.Counter"""

MODES: Final = {"kernel": 1, "user": 2, "hypervisor": 3, "guest kernel": 4, "guest user": 5}
"""Profiling.CpuMode by ``samples.domain``"""


@dataclass(frozen=True)
class Samples:
    """Columns of samples, by time. Counts are cumulative for each processor, as the trace processor expects them."""

    time_ns: Ints
    cpu: Ints
    pid: Ints
    tid: Ints
    call_stack: Ints
    mode: Ints
    timebase: Ints
    followers: Sequence[Ints]


class SampleSequence(PacketSequence):
    """The samples of one event."""

    def __init__(
        self, file: BinaryIO, number: int, event: str, frequency_hz: int | None, followers: Sequence[str]
    ) -> None:
        timebase = packets.number(2, frequency_hz) if frequency_hz else b""
        if event in _COUNTERS:
            timebase += packets.number(4, _COUNTERS[event])
        beside = b"".join(packets.data(4, _follower(name)) for name in followers)
        fields = packets.data(1, timebase + packets.text(10, event)) + beside
        super().__init__(file, number, packets.data(_DEFAULTS, fields))

    @property
    def interned(self) -> Interned:
        """What call stacks are made of; what is new is written before the samples that follow."""
        return self._interned

    def write(self, samples: Samples) -> None:
        """Writes samples; raises ``ValueError`` where a time is smaller than the one before."""
        for start in range(0, len(samples.time_ns), BATCH_ROWS):
            part = slice(start, start + BATCH_ROWS)
            body: list[Column] = [
                Varint(_CPU, samples.cpu[part]),
                Varint(_PID, samples.pid[part]),
                Varint(_TID, samples.tid[part]),
                Varint(_CALL_STACK, samples.call_stack[part]),
                Varint(_MODE, samples.mode[part]),
                Varint(_TIMEBASE, samples.timebase[part]),
                *(Varint(_FOLLOWER, counts[part]) for counts in samples.followers),
            ]
            self._write_packets(samples.time_ns[part], PERF_SAMPLE, body)

    def lost(self, time_ns: int, records: int) -> None:
        """Says that the kernel dropped records by then; on which processor is not known, so it stands under 0."""
        at = time_ns if self._time_ns is None else max(time_ns, self._time_ns)
        self._write_packet(at, PERF_SAMPLE, packets.number(1, 0) + packets.number(_LOST, records))


def _follower(name: str) -> bytes:
    known = packets.number(1, _COUNTERS[name]) if name in _COUNTERS else b""
    return known + packets.text(4, name)


def cumulative(values: Ints, cpu: Ints, before: dict[int, int]) -> Ints:
    """The running sum of each processor's values; ``before`` holds the sums so far, and is brought up to date."""
    result = np.empty(len(values), np.int64)
    for number in np.unique(cpu).tolist():
        mine = cpu == number
        result[mine] = before.get(number, 0) + np.cumsum(values[mine])
        before[number] = int(result[mine][-1])
    return result
