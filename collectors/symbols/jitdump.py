"""Code made at run time, by the dump that a JIT compiler keeps of it: names, places, and since when.

The format is perf's (tools/perf/Documentation/jitdump-specification.txt of the Linux sources). oneDNN writes it with
``ONEDNN_JIT_PROFILE=6``.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from collectors.symbols.jit import Known, jit_code
from collectors.symbols.mappings import Mapping

MAGIC: Final = 0x4A695444
"""As a number in the order of bytes of whoever wrote it."""

LOAD, MOVE = 0, 1
ARCHITECTURE_TIME: Final = 1
"""A flag: times are the processor's time stamps, not ``CLOCK_MONOTONIC``."""

_FILE: Final = re.compile(r"^jit-\d+\.dump$")


@dataclass(frozen=True)
class Loaded:
    """Code, and when it came to its place."""

    time: int  # CLOCK_MONOTONIC in nanoseconds, unless the dump says otherwise
    place: Known


@dataclass(frozen=True)
class JitDump:
    """What a dump tells, in its order."""

    pid: int
    is_monotonic: bool  # else times are those of the processor's counter
    loaded: tuple[Loaded, ...]

    def places(self) -> list[Known]:
        """Those of all times: the last one is right where they overlap."""
        return [loaded.place for loaded in self.loaded]


def read_jitdump(data: bytes) -> JitDump | None:
    """None where these are no such bytes. A record that was cut short, as the last one of a killed process may be,
    ends the dump."""
    order = next((order for order in "<>" if data[:4] == struct.pack(f"{order}I", MAGIC)), None)
    header = struct.Struct(f"{order}IIIIIIQQ") if order is not None else None
    if order is None or header is None or len(data) < header.size:
        return None
    _, _, header_size, _, _, pid, _, flags = header.unpack_from(data)
    return JitDump(pid, not flags & ARCHITECTURE_TIME, tuple(_records(data, max(header_size, header.size), order)))


def _records(data: bytes, place: int, order: str) -> Iterable[Loaded]:
    head, load, move = (struct.Struct(order + fields) for fields in ("IIQ", "IIQQQQ", "IIQQQQQ"))
    by_index: dict[int, str] = {}
    while place + head.size <= len(data):
        kind, size, time = head.unpack_from(data, place)
        body, end = place + head.size, place + size
        if size < head.size or end > len(data):
            return
        if kind == LOAD and body + load.size <= end:
            _, _, _, address, length, index = load.unpack_from(data, body)
            name = data[body + load.size : end].partition(b"\0")[0].decode(errors="replace")
            by_index[index] = name
            yield Loaded(time, jit_code(address, length, name))
        elif kind == MOVE and body + move.size <= end:
            _, _, _, _, address, length, index = move.unpack_from(data, body)
            if index in by_index:
                yield Loaded(time, jit_code(address, length, by_index[index]))
        place = end


def jitdump_of(mappings: Iterable[Mapping]) -> Path | None:
    """The dump that a process writes: it maps the beginning of the file as code, for perf to notice."""
    return next((mapping.file for mapping in mappings if mapping.file and _FILE.match(mapping.library)), None)
