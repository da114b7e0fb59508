"""ELF files (64 bits, little-endian): build id, segments, and the symbols of functions.

pyelftools reads the headers; the rows of a symbol table, which are half a million in libtorch, are read by numpy.
"""

from __future__ import annotations

import io
import lzma
import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection

from collectors.symbols.ranges import Addresses, Numbers
from collectors.symbols.table import NO_SYMBOLS, SymbolTable

SYMBOL: Final = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
STT_FUNC, STT_GNU_IFUNC = 2, 10
STB_LOCAL: Final = 0
SHN_UNDEF, SHN_LORESERVE = 0, 0xFF00
PF_X: Final = 1
SHF_EXECINSTR: Final = 4

STUBS: Final = ".plt"
"""How sections of stubs are called: .plt, .plt.sec, .plt.got."""

Bytes = bytes | mmap.mmap
Rows = npt.NDArray[np.void]


class NotElfError(ValueError):
    """It is no such file, or not whole."""


@dataclass(frozen=True)
class Segment:
    """Executable code: where it stands in the file, and where the file wants it."""

    offset: int
    address: int
    length: int  # in the file
    alignment: int

    def holds(self, offset: int) -> bool:
        """Whether a mapping of this segment may begin at ``offset`` of the file: mappings begin with a page."""
        first = self.offset - self.offset % max(self.alignment, 1)
        return first <= offset < self.offset + self.length


class Elf:
    """An open file. ``data`` are its bytes. Raises ``NotElfError``, as every method does where the file is broken."""

    def __init__(self, file: BinaryIO, data: Bytes) -> None:
        self._data = data
        with _broken():
            self._elf = ELFFile(file)
            if self._elf.elfclass != 64 or not self._elf.little_endian:
                raise NotElfError("not of 64 bits, little-endian")

    def build_id(self) -> str | None:
        """What the linker called exactly this code, in hexadecimal."""
        with _broken():
            for section in self._elf.iter_sections():
                if isinstance(section, NoteSection):
                    for note in section.iter_notes():
                        if note["n_type"] == "NT_GNU_BUILD_ID":
                            return str(note["n_desc"])
        return None

    def segments(self) -> list[Segment]:
        """The executable ones."""
        with _broken():
            return [
                Segment(part["p_offset"], part["p_vaddr"], part["p_filesz"], part["p_align"])
                for part in self._elf.iter_segments("PT_LOAD")
                if part["p_flags"] & PF_X
            ]

    def symbols(self) -> SymbolTable:
        """The functions by ``.symtab``; by ``.dynsym`` and MiniDebugInfo where that was stripped. Sections of stubs,
        which call other libraries, are functions with the section's name."""
        with _broken():
            whole = self._table(".symtab")
            tables = [whole] if len(whole) else [self._table(".dynsym"), self._mini_debug_info()]
            return _joined([*tables, self._stubs()])

    def _table(self, name: str) -> SymbolTable:
        section = self._elf.get_section_by_name(name)
        if section is None or section["sh_type"] == "SHT_NOBITS":
            return NO_SYMBOLS
        rows = np.frombuffer(self._bytes(section), dtype=SYMBOL)
        names = self._elf.get_section(section["sh_link"])
        sections = [(part["sh_addr"] + part["sh_size"]) for part in self._elf.iter_sections()]
        return _functions(rows, np.array(sections, dtype=np.uint64), self._data, names["sh_offset"])

    def _stubs(self) -> SymbolTable:
        sections = [
            section
            for section in self._elf.iter_sections()
            if section.name.startswith(STUBS) and section["sh_flags"] & SHF_EXECINSTR
        ]
        starts = np.array([section["sh_addr"] for section in sections], dtype=np.uint64)
        sizes = np.array([section["sh_size"] for section in sections], dtype=np.uint64)
        names_at = self._elf.get_section(self._elf["e_shstrndx"])["sh_offset"] if sections else 0
        names = np.array([section["sh_name"] for section in sections], dtype=np.int64)
        return SymbolTable(starts, starts + sizes, names + names_at, self._data)

    def _bytes(self, section: Any) -> memoryview:
        start, size = section["sh_offset"], section["sh_size"]
        return memoryview(self._data)[start : start + size - size % SYMBOL.itemsize]

    def _mini_debug_info(self) -> SymbolTable:
        """The symbols of local functions that a distribution leaves in a stripped file, compressed."""
        section = self._elf.get_section_by_name(".gnu_debugdata")
        if section is None:
            return NO_SYMBOLS
        data = lzma.decompress(section.data())
        return Elf(io.BytesIO(data), data)._table(".symtab")


class _broken:  # noqa: N801 - reads as a statement
    """pyelftools trusts what a file says; of a broken one it may raise whatever parsing raises."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, NotElfError):
            raise NotElfError(str(error)) from error


def _functions(rows: Rows, section_ends: Addresses, names: Bytes, names_at: int) -> SymbolTable:
    """One row an address. A function without a size, as assembly has them, reaches to the next one."""
    kinds = rows["info"] & 15
    section = rows["section"]
    is_function = ((kinds == STT_FUNC) | (kinds == STT_GNU_IFUNC)) & (section != SHN_UNDEF) & (section < SHN_LORESERVE)
    rows = rows[is_function & (section < len(section_ends))]
    rows = _without_aliases(rows[np.argsort(rows["value"], kind="stable")], names, names_at)
    starts = rows["value"].astype(np.uint64)
    ends = starts + rows["size"]
    next_starts = np.append(starts[1:], np.uint64(2**64 - 1))
    to_next = np.minimum(next_starts, section_ends[rows["section"]])
    ends = np.where(rows["size"] == 0, to_next, ends)
    return SymbolTable(starts, ends, rows["name"].astype(np.int64) + names_at, names)


def _without_aliases(rows: Rows, names: Bytes, names_at: int) -> Rows:
    """Of the names of an address one that has a size, others can link to, and is the shortest. ``rows``: by value."""
    same = rows["value"][1:] == rows["value"][:-1]
    shared = np.append(same, False) | np.append(False, same)
    aliases = rows[shared]
    starts = (aliases["name"].astype(np.int64) + names_at).tolist()
    lengths = np.array([names.find(b"\0", start) - start for start in starts], dtype=np.int64)
    is_local = aliases["info"] >> 4 == STB_LOCAL
    aliases = aliases[np.lexsort((lengths, is_local, aliases["size"] == 0, aliases["value"]))]
    _, first = np.unique(aliases["value"], return_index=True)
    kept = np.concatenate([rows[~shared], aliases[first]])
    return kept[np.argsort(kept["value"], kind="stable")]


def _joined(tables: Sequence[SymbolTable]) -> SymbolTable:
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
