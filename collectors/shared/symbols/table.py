"""The functions of a file by address."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from collectors.shared.symbols.demangle import demangle
from collectors.shared.symbols.ranges import Addresses, Numbers, Ranges

Bytes = bytes | mmap.mmap


@dataclass(frozen=True, eq=False)
class SymbolTable:
    """Functions, sorted by where they begin; addresses are the file's own. Arrays of equal length."""

    starts: Addresses
    ends: Addresses
    name_offsets: Numbers  # in `names`, where each ends with a zero byte
    names: Bytes

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def ranges(self) -> Ranges:
        """Where one function lies within another the inner one is right."""
        return Ranges.of(self.starts, self.ends)

    def find(self, addresses: Addresses) -> Numbers:
        """For each address the number of the function around it, or ``ranges.NONE``."""
        place = self.ranges.find(addresses)
        if not len(self):
            return place
        return np.where(place >= 0, self.ranges.owners[place], place)

    def name(self, number: int) -> str:
        """As the file has it: mangled."""
        start = int(self.name_offsets[number])
        end = self.names.find(b"\0", start)
        return self.names[start : end if end >= 0 else len(self.names)].decode(errors="replace")

    def full_name(self, number: int) -> str:
        """Demangled."""
        return demangle(self.name(number))


NO_SYMBOLS: Final = SymbolTable(
    np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64), b""
)


def joined(tables: Sequence[SymbolTable]) -> SymbolTable:
    """Of an address that several tables name the first one's name."""
    tables = [table for table in tables if len(table)]
    if not tables:
        return NO_SYMBOLS
    names: Bytes = tables[0].names
    offsets = [table.name_offsets for table in tables]
    if any(table.names is not names for table in tables):
        names, offsets = _packed(tables)
    starts = np.concatenate([table.starts for table in tables])
    ends = np.concatenate([table.ends for table in tables])
    _, first = np.unique(starts, return_index=True)
    return SymbolTable(starts[first], ends[first], np.concatenate(offsets)[first], names)


def _packed(tables: Sequence[SymbolTable]) -> tuple[bytes, list[Numbers]]:
    """The names that tables use, one after another, and where those of each are."""
    names = [table.name(number).encode() + b"\0" for table in tables for number in range(len(table))]
    offsets = np.cumsum([0, *map(len, names)], dtype=np.int64)[:-1]
    return b"".join(names), np.split(offsets, np.cumsum([len(table) for table in tables])[:-1])
