"""How a file's functions lay out their frames: the tables (``.eh_frame``) by which exceptions find their way back.

They are there in code without frame pointers too, which most distributions' libc is. pyelftools decodes an entry; the
index (``.eh_frame_hdr``) is searched here, since a large library has a hundred thousand entries and few are asked for.
"""

from __future__ import annotations

import io
import mmap
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from elftools.dwarf.callframe import FDE, CallFrameInfo, RegisterRule
from elftools.dwarf.structs import DWARFStructs

from collectors.shared.symbols.elf import Elf

INDEX_HEADER: Final = bytes((1, 0x1B, 0x03, 0x3B))
"""Version 1; the table's place from here, its length, pairs of 32 bits from the index's begin: what linkers write."""

INDEX_ENTRY: Final = np.dtype([("function", "<i4"), ("entry", "<i4")])
GNU_ARGS_SIZE: Final = 0x2E

KEPT: Final = 4096
"""Decoded entries that a file keeps."""


Rows = tuple[int, list[tuple[int, "Frame | None"]]]


@dataclass(frozen=True)
class Frame:
    """A function's frame at one instruction, by DWARF's numbers of registers: the caller's stack begins at ``register``
    + ``offset``, and from there on lie the caller's ``saved`` registers."""

    register: int
    offset: int
    saved: tuple[tuple[int, int], ...]
    return_register: int


class CallFrames:
    """Of one file. ``index``: rows of ``INDEX_ENTRY`` by address."""

    def __init__(self, index: npt.NDArray[np.void], index_address: int, entries: CallFrameInfo) -> None:
        self._functions = index["function"].astype(np.int64) + index_address
        self._entries = index["entry"].astype(np.int64) + index_address - entries.address
        self._info = entries
        self._decoded = lru_cache(maxsize=KEPT)(self._decode)

    def functions(self) -> list[int]:
        """Where they begin, ascending."""
        return [int(begin) for begin in self._functions]

    def at(self, address: int) -> Frame | None:
        """Of the instruction at an address of the file; None where the file does not say, or says it in a program of
        its own."""
        number = int(np.searchsorted(self._functions, address, side="right")) - 1
        if number < 0:
            return None
        end, rows = self._decoded(int(self._entries[number]))
        if address >= end:
            return None
        found = None
        for begin, frame in rows:
            if begin > address:
                break
            found = frame
        return found

    def _decode(self, offset: int) -> Rows:
        try:
            return self._rows(offset)
        except Exception:  # pyelftools raises whatever parsing raises, also where it does not know an instruction
            return 0, []

    def _rows(self, offset: int) -> Rows:
        """The end of the entry's function, and its frame from each address on."""
        entry = self._info._parse_entry_at(offset)
        if not isinstance(entry, FDE) or entry.cie is None:
            return 0, []
        # how much a call pushed matters to handlers of exceptions only, and pyelftools does not know it
        entry.instructions = [one for one in entry.instructions if one.opcode != GNU_ARGS_SIZE]
        begin, size = entry["initial_location"], entry["address_range"]
        return_register = entry.cie["return_address_register"]
        rows = [(row["pc"], _frame(row, return_register)) for row in entry.get_decoded().table]
        return begin + size, rows


def _frame(row: dict[Any, Any], return_register: int) -> Frame | None:
    rule = row["cfa"]
    if rule.reg is None:
        return None
    saved = [
        (register, how.arg)
        for register, how in row.items()
        if isinstance(register, int) and how.type == RegisterRule.OFFSET
    ]
    return Frame(rule.reg, rule.offset, tuple(saved), return_register)


@cache
def open_call_frames(path: Path) -> CallFrames | None:
    """Of a file; None where it has none that can be searched, or cannot be read."""
    try:
        with path.open("rb") as file:
            return _call_frames(Elf(file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
    except Exception:  # pyelftools trusts what a file says; of a broken one it may raise whatever parsing raises
        return None


def _call_frames(elf: Elf) -> CallFrames | None:
    index, entries = (elf.contents(name) for name in (".eh_frame_hdr", ".eh_frame"))
    if index is None or entries is None:
        return None
    (index_at, data), (entries_at, frames) = index, entries
    if data[: len(INDEX_HEADER)] != INDEX_HEADER:
        return None
    count = int.from_bytes(data[8:12], "little")
    rows = np.frombuffer(data, dtype=INDEX_ENTRY, count=count, offset=12)
    structs = DWARFStructs(little_endian=True, dwarf_format=32, address_size=8)
    info = CallFrameInfo(io.BytesIO(frames), len(frames), entries_at, structs, for_eh_frame=True)
    return CallFrames(rows, index_at, info)
