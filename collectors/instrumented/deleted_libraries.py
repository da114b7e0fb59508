"""Loaded libraries whose files are gone: frida crashes when it first instruments a process that has one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

DELETED: Final = " (deleted)"
ELF: Final = b"\x7fELF"


def begins_of_deleted_files(mappings: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Address and path of every readable mapping of a deleted file's first byte. ``mappings``: lines of
    ``/proc/PID/maps``."""
    for line in mappings:
        fields = line.rstrip("\n").split(maxsplit=5)
        if len(fields) < 6 or not fields[5].endswith(DELETED):
            continue
        addresses, protection, offset = fields[:3]
        if protection.startswith("r") and int(offset, 16) == 0:
            yield int(addresses.split("-")[0], 16), fields[5].removesuffix(DELETED)


def deleted_libraries() -> list[str]:
    """Paths of those that this process has loaded."""
    lines = Path("/proc/self/maps").read_text(errors="surrogateescape").splitlines()
    begins = list(begins_of_deleted_files(lines))
    if not begins:
        return []
    memory = os.open("/proc/self/mem", os.O_RDONLY)
    try:
        return [path for address, path in begins if _is_library(memory, address)]
    finally:
        os.close(memory)


def _is_library(memory: int, address: int) -> bool:
    """Read as a file's: of a file that was cut short, too, its memory would end the process (SIGBUS)."""
    try:
        return os.pread(memory, len(ELF), address) == ELF
    except OSError:
        return False
