"""perf's records as the kernel writes them, built one by one, and read one by one: what the decoder is held against."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

from hwprof.hardware import perf_sampling

CONTEXT_USER = 2**64 - 512
KERNEL, USER = 1, 2


@dataclass(frozen=True)
class Sample:
    """What a sample says. ``chain`` is as recorded: a mark, the own address, callers."""

    event: int = 7
    address: int = 0x40_1000
    pid: int = 100
    tid: int = 101
    time_ns: int = 1_000_000
    cpu: int = 1
    period: int = 1_001_001
    mode: int = USER
    enabled_ns: int = 0
    running_ns: int = 0
    values: tuple[int, ...] = ()
    chain: tuple[int, ...] = ()

    def record(self, *, reading: bool) -> bytes:
        body = struct.pack(
            "<QQIIQIIQ", self.event, self.address, self.pid, self.tid, self.time_ns, self.cpu, 0, self.period
        )
        if reading:
            group = (len(self.values), self.enabled_ns, self.running_ns, *self.values)
            body += struct.pack(f"<{len(group)}Q", *group)
        body += struct.pack(f"<{1 + len(self.chain)}Q", len(self.chain), *self.chain)
        return record(perf_sampling.RECORD_SAMPLE, self.mode, body)

    def callers(self) -> tuple[int, ...]:
        """By the book, not by arrays."""
        user = [address for address in self.chain if address < perf_sampling.CONTEXT_MAX]
        return tuple(user[1:] if self.mode == USER else user)


@dataclass(frozen=True)
class Other:
    """Any other record: its kind, what stands before the trailer, and the trailer."""

    kind: int
    body: bytes = b""
    misc: int = 0
    pid: int = 100
    tid: int = 101
    time_ns: int = 1_000_000
    cpu: int = 1
    event: int = 7

    def record(self, *, reading: bool) -> bytes:
        trailer = struct.pack("<IIQIIQ", self.pid, self.tid, self.time_ns, self.cpu, 0, self.event)
        return record(self.kind, self.misc, self.body + trailer)


def record(kind: int, misc: int, body: bytes) -> bytes:
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def switch(*, out: bool, preempted: bool = False, **more: Any) -> Other:
    misc = (perf_sampling.MISC_SWITCH_OUT if out else 0) | (perf_sampling.MISC_SWITCH_OUT_PREEMPT if preempted else 0)
    return Other(perf_sampling.RECORD_SWITCH, misc=misc, **more)


def lost(records: int) -> Other:
    return Other(perf_sampling.RECORD_LOST, struct.pack("<QQ", 7, records))


def lost_samples(samples: int) -> Other:
    return Other(perf_sampling.RECORD_LOST_SAMPLES, struct.pack("<Q", samples))


def throttle() -> Other:
    return Other(perf_sampling.RECORD_THROTTLE, struct.pack("<QQQ", 1, 7, 7))


def birth(pid: int, tid: int, time_ns: int = 5) -> Other:
    return Other(perf_sampling.RECORD_FORK, struct.pack("<IIIIQ", pid, 1, tid, 1, time_ns), time_ns=time_ns)


def end(pid: int, tid: int, time_ns: int = 5) -> Other:
    return Other(perf_sampling.RECORD_EXIT, struct.pack("<IIIIQ", pid, 1, tid, 1, time_ns), time_ns=time_ns)


def mapping(address: int, size_bytes: int, offset_bytes: int, file: str, pid: int = 100) -> Other:
    name = file.encode() + b"\0"
    name += b"\0" * (-len(name) % 8)
    fixed = struct.pack("<IIQQQIIQQII", pid, pid, address, size_bytes, offset_bytes, 8, 1, 99, 0, 5, 2)
    return Other(perf_sampling.RECORD_MMAP2, fixed + name)


def renaming(pid: int, tid: int, name: str) -> Other:
    text = name.encode() + b"\0"
    text += b"\0" * (-len(text) % 8)
    return Other(perf_sampling.RECORD_COMM, struct.pack("<II", pid, tid) + text, pid=pid, tid=tid)


@dataclass
class Plain:
    """What a stream holds, told record by record."""

    samples: list[Sample] = field(default_factory=list)
    switches: list[tuple[int, int, int, int, bool, bool]] = field(default_factory=list)
    lost: int = 0
    throttled: int = 0
    used: int = 0


def read_plainly(data: bytes, *, reading: bool) -> Plain:
    """The straightforward decoder."""
    plain = Plain()
    while len(data) - plain.used >= 8:
        kind, misc, size = struct.unpack_from("<IHH", data, plain.used)
        if size % 8 or size == 0 or plain.used + size > len(data):
            break
        body = data[plain.used + 8 : plain.used + size]
        plain.used += size
        if kind == perf_sampling.RECORD_SAMPLE:
            plain.samples.append(_sample(body, misc, reading=reading))
        elif kind == perf_sampling.RECORD_SWITCH:
            pid, tid, time_ns, cpu, _, _ = struct.unpack("<IIQIIQ", body[-32:])
            plain.switches.append((pid, tid, time_ns, cpu, bool(misc & 0x2000), bool(misc & 0x4000)))
        elif kind == perf_sampling.RECORD_LOST:
            plain.lost += struct.unpack_from("<Q", body, 8)[0]
        elif kind == perf_sampling.RECORD_LOST_SAMPLES:
            plain.lost += struct.unpack_from("<Q", body, 0)[0]
        elif kind == perf_sampling.RECORD_THROTTLE:
            plain.throttled += 1
    return plain


def _sample(body: bytes, misc: int, *, reading: bool) -> Sample:
    event, address, pid, tid, time_ns, cpu, _, period = struct.unpack_from("<QQIIQIIQ", body, 0)
    at, enabled_ns, running_ns, values = 48, 0, 0, ()
    if reading:
        count, enabled_ns, running_ns = struct.unpack_from("<QQQ", body, at)
        values = struct.unpack_from(f"<{count}Q", body, at + 24)
        at += 24 + 8 * count
    (length,) = struct.unpack_from("<Q", body, at)
    chain = struct.unpack_from(f"<{length}Q", body, at + 8)
    mode = misc & 7
    return Sample(event, address, pid, tid, time_ns, cpu, period, mode, enabled_ns, running_ns, values, chain)
