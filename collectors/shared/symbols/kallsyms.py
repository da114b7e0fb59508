"""The operating system's functions: /proc/kallsyms, where the user may read its addresses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Final

import numpy as np

from collectors.shared.symbols.ranges import Addresses, Numbers

FIRST_ADDRESS: Final = 1 << 63
"""The upper half of the addresses is the kernel's, on x86-64 and aarch64."""

KERNEL_LIBRARY: Final = "[kernel]"
TEXT: Final = frozenset("tTwW")


@dataclass(frozen=True, eq=False)
class KernelSymbols:
    """Functions sorted by address; each reaches to the next one. Empty where the kernel hides its addresses."""

    starts: Addresses
    lines: tuple[str, ...]  # taken apart when asked for: there are a hundred thousand

    def find(self, addresses: Addresses) -> Numbers:
        """For each address the number of the function around it; -1 before the first one."""
        return np.searchsorted(self.starts, addresses, side="right").astype(np.int64) - 1

    def name(self, number: int) -> str:
        """Of a function."""
        return self.lines[number].split()[2]

    def module(self, number: int) -> str:
        """Whose function it is, in brackets."""
        fields = self.lines[number].split()
        return fields[3] if len(fields) > 3 else KERNEL_LIBRARY


def read_kallsyms(text: str) -> KernelSymbols:
    """From the text of /proc/kallsyms (16 digits, a letter, the name, [module]), whose addresses are 0 where the reader
    may not know them."""
    rows = [(int(line[:16], 16), line) for line in text.splitlines() if line[17:18] in TEXT and len(line) > 19]
    rows = sorted((row for row in rows if row[0] >= FIRST_ADDRESS), key=itemgetter(0))
    return KernelSymbols(np.array([row[0] for row in rows], dtype=np.uint64), tuple(row[1] for row in rows))


@cache
def kernel_symbols() -> KernelSymbols:
    """Of this machine."""
    try:
        return read_kallsyms(Path("/proc/kallsyms").read_text(errors="replace"))
    except OSError:
        return read_kallsyms("")
