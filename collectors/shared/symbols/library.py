"""A file that a process executes: where its code belongs, and its functions, from the cache or the file itself."""

from __future__ import annotations

import io
import mmap
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from collectors.shared.symbols import cache as kept_tables
from collectors.shared.symbols.elf import Elf, NotElfError, Segment
from collectors.shared.symbols.table import NO_SYMBOLS, Bytes, SymbolTable

DEBUG_FILES: Final = Path("/usr/lib/debug/.build-id")
"""Where a distribution's debug packages put what was stripped, by build id."""

ADDRESSES: Final = 1 << 64

SMALL_BYTES: Final = 1 << 20
"""A file up to this size is read as fast as its table would be from the cache."""


@dataclass(frozen=True, eq=False)
class Library:
    """What names the code of a file."""

    segments: tuple[Segment, ...]
    symbols: SymbolTable

    def address(self, offset: int) -> int | None:
        """Where the file wants what a mapping has from ``offset`` on; None where it wants no code there, or, damaged,
        where no address is."""
        found = next((segment for segment in self.segments if segment.holds(offset)), None)
        return as_address(found.address + offset - found.offset) if found is not None else None


def as_address(number: int) -> int | None:
    """The number, unless no address is as low or as high: files may ask for anything."""
    return number if 0 <= number < ADDRESSES else None


NO_LIBRARY: Final = Library((), NO_SYMBOLS)


@cache
def open_library(path: Path) -> Library:
    """Of a file; without symbols where it has none or cannot be read."""
    try:
        with path.open("rb") as file:
            return _library(Elf(file, data := mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)), data)
    except (OSError, ValueError):
        return NO_LIBRARY


def image_library(data: bytes) -> Library:
    """Of a file's bytes in memory, such as the vdso's."""
    try:
        elf = Elf(io.BytesIO(data), data)
        return Library(tuple(elf.segments()), elf.symbols())
    except NotElfError:
        return NO_LIBRARY


def _library(elf: Elf, data: Bytes) -> Library:
    segments = tuple(elf.segments())
    build_id = elf.build_id()
    if build_id is not None:
        debug_file = open_debug_file(build_id)
        if len(debug_file):
            return Library(segments, debug_file)
    return Library(segments, _symbols(elf, data, build_id))


def open_debug_file(build_id: str) -> SymbolTable:
    """What a debug package has of a file with this build id."""
    path = DEBUG_FILES / build_id[:2] / f"{build_id[2:]}.debug"
    try:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            return _symbols(Elf(file, data), data, build_id)
    except (OSError, ValueError):
        return NO_SYMBOLS


def _symbols(elf: Elf, data: Bytes, build_id: str | None) -> SymbolTable:
    if build_id is None or len(data) <= SMALL_BYTES:
        return elf.symbols()
    place = kept_tables.place_of(build_id, len(data))
    table = kept_tables.load(place, data)
    if table is None:
        table = elf.symbols()
        kept_tables.keep(place, table, data)
    return table
