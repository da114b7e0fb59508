"""The functions of a file by address."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from collectors.symbols.demangle import demangle
from collectors.symbols.ranges import Addresses, Numbers, Ranges


@dataclass(frozen=True, eq=False)
class SymbolTable:
    """Functions, sorted by where they begin; addresses are the file's own. Arrays of equal length."""

    starts: Addresses
    ends: Addresses
    name_offsets: Numbers  # in `names`, where each ends with a zero byte
    names: bytes | mmap.mmap

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
