"""torch.profiler's own file: how it is written, and read."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

THREAD_NAME: Final = re.compile(rb'("name": "thread -?\d+ \()(.{0,15}?)(\)"\s*\}\s*\},)', re.DOTALL)
"""A thread's name as the kernel keeps it (TASK_COMM_LEN) in what the profiler writes of it."""

ALLOCATION: Final = "[memory]"
CPU: Final = 0
"""The device type."""

EVENT: Final = b'"ph":'
"""Which every event has once."""

FASTEST: Final = 1
"""Of gzip: some 20 MB become 1 to 2 in a tenth of a second."""


class _Arguments(msgspec.Struct, gc=False):
    """Of an operator, or of an allocation; each may be anything."""

    dimensions: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw, name="Input Dims")
    address: Any = msgspec.field(default=None, name="Addr")
    bytes: Any = msgspec.field(default=None, name="Bytes")
    device: Any = msgspec.field(default=None, name="Device Type")


class _Event(msgspec.Struct, gc=False):
    """The fields of a trace event that are read here; the decoder skips the others."""

    ph: str
    name: str = ""
    cat: str = ""
    ts: float = 0.0
    dur: float = 0.0
    pid: int | str = 0
    tid: int | str = 0
    args: _Arguments | None = None


class _AnyObject(msgspec.Struct, gc=False):
    """The decoder looks whether it is JSON, and keeps nothing."""


class ProfileFile(msgspec.Struct, gc=False):
    """The profiler's file."""

    events: list[_Event] = msgspec.field(name="traceEvents")
    base_ns: int = msgspec.field(default=0, name="baseTimeNanoseconds")

    def unix_ns(self, microseconds: float) -> int:
        """Of a time in it."""
        return self.base_ns + round(microseconds * 1000)


class Allocation(NamedTuple):
    """A piece of memory that torch got for a tensor, or gave back."""

    time_us: float  # on the profiler's clock
    pid: int
    tid: int
    address: int
    bytes: int  # negative: given back


def export(profile: Any, file: Path) -> int:
    """Has the profiler write its file, which is kept as ``file``, packed; how many events it has.

    It writes threads' names as they are, which any program may choose: what is no JSON for them is mended. It spells
    paths its own way (``\\`` becomes ``/``, line feeds vanish) and writes wherever that leads: it is given the folder
    by descriptor.
    """
    plain = file.with_suffix("")
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        profile.export_chrome_trace(f"/proc/self/fd/{folder}/{plain.name}")
    finally:
        os.close(folder)
    written = plain.read_bytes()
    try:
        msgspec.json.decode(written, type=_AnyObject)
    except msgspec.DecodeError:
        written = THREAD_NAME.sub(_escaped, written)
    file.write_bytes(gzip.compress(written, FASTEST, mtime=0))
    plain.unlink()
    return written.count(EVENT)


def read(file: Path) -> ProfileFile:
    """What ``export`` has kept. Raises ``msgspec.DecodeError`` where it is no JSON."""
    return msgspec.json.decode(gzip.decompress(file.read_bytes()), type=ProfileFile)


def allocations(document: ProfileFile) -> Iterator[Allocation]:
    """Those of the processor's memory; what is none by its form is left out."""
    for event in document.events:
        found = event.args
        if event.name != ALLOCATION or found is None or found.device != CPU:
            continue
        whole = (event.pid, event.tid, found.address, found.bytes)
        if all(type(one) is int for one in whole) and 0 <= found.address < 2**64 and abs(found.bytes) < 2**63:
            yield Allocation(event.ts, int(event.pid), int(event.tid), found.address, found.bytes)


def _escaped(found: re.Match[bytes]) -> bytes:
    return found[1] + msgspec.json.encode(found[2].decode(errors="replace"))[1:-1] + found[3]


@cache
def shapes(dimensions: bytes) -> str | None:
    """Input dimensions as "1x3x640x480 32x3x3x3"; scalars and other values have no shape and are left out."""
    if not dimensions:
        return None
    shapes = [_shape(shape) for shape in msgspec.json.decode(dimensions) if shape]
    return " ".join(shapes) or None


def _shape(sizes: list[Any]) -> str:
    """One shape; of a list of tensors theirs: ``(1x3,1x4)``."""
    if any(isinstance(size, list) for size in sizes):
        return f"({','.join(_shape(one) for one in sizes)})"
    return "x".join(map(str, sizes)) or "scalar"
