"""The operating system's functions: /proc/kallsyms, where the user may read its addresses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
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
    names: tuple[str, ...]
    modules: tuple[str, ...]  # in brackets

    def find(self, addresses: Addresses) -> Numbers:
        """For each address the number of the function around it; -1 before the first one."""
        return np.searchsorted(self.starts, addresses, side="right").astype(np.int64) - 1


def read_kallsyms(text: str) -> KernelSymbols:
    """From the text of /proc/kallsyms, whose addresses are 0 where the reader may not know them."""
    rows = []
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 3 and fields[1] in TEXT and (address := int(fields[0], 16)) >= FIRST_ADDRESS:
            rows.append((address, fields[2], fields[3] if len(fields) > 3 else KERNEL_LIBRARY))
    rows.sort(key=lambda row: row[0])
    return KernelSymbols(
        np.array([row[0] for row in rows], dtype=np.uint64),
        tuple(row[1] for row in rows),
        tuple(row[2] for row in rows),
    )


@cache
def kernel_symbols() -> KernelSymbols:
    """Of this machine."""
    try:
        return read_kallsyms(Path("/proc/kallsyms").read_text(errors="replace"))
    except OSError:
        return read_kallsyms("")
