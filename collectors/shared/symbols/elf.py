"""ELF files (64 bits, little-endian): build id, segments, and the symbols of functions.

pyelftools reads the headers; the rows of a symbol table, which are half a million in libtorch, are read by numpy.
"""

from __future__ import annotations

import io
import lzma
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, BinaryIO, Final

import numpy as np
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection

from collectors.shared.symbols.rows import SYMBOL, functions
from collectors.shared.symbols.table import NO_SYMBOLS, Bytes, SymbolTable, joined

PT_LOAD: Final = 1
PF_X: Final = 1
SHF_EXECINSTR: Final = 4

PROGRAM_HEADER: Final = np.dtype(
    [
        *(("type", "<u4"), ("flags", "<u4"), ("offset", "<u8"), ("address", "<u8"), ("physical", "<u8")),
        *(("length", "<u8"), ("memory", "<u8"), ("alignment", "<u8")),
    ]
)
"""An entry of the program header table: ``Elf64_Phdr`` of the System V ABI. pyelftools parses what each leads to."""

STUBS: Final = ".plt"
"""How sections of stubs are called: .plt, .plt.sec, .plt.got."""


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
        with _reading():
            self._elf = ELFFile(file)
            if self._elf.elfclass != 64 or not self._elf.little_endian:
                raise NotElfError("not of 64 bits, little-endian")

    def build_id(self) -> str | None:
        """What the linker called exactly this code, in hexadecimal."""
        with _reading():
            for section in self._sections:
                if isinstance(section, NoteSection):
                    for note in section.iter_notes():
                        if note["n_type"] == "NT_GNU_BUILD_ID":
                            return str(note["n_desc"])
        return None

    def segments(self) -> list[Segment]:
        """The executable ones."""
        with _reading():
            at, count = self._elf["e_phoff"], self._elf.num_segments()
            if count and self._elf["e_phentsize"] != PROGRAM_HEADER.itemsize:
                raise NotElfError("program headers of another size")
            headers = np.frombuffer(self._data, dtype=PROGRAM_HEADER, count=count, offset=at) if count else ()
            return [
                Segment(*(int(part[name]) for name in ("offset", "address", "length", "alignment")))
                for part in headers
                if part["type"] == PT_LOAD and part["flags"] & PF_X
            ]

    def symbols(self) -> SymbolTable:
        """The functions by ``.symtab``; by ``.dynsym`` and MiniDebugInfo where that was stripped. Sections of stubs,
        which call other libraries, are functions with the section's name."""
        with _reading():
            whole = self._table(".symtab")
            tables = [whole] if len(whole) else [self._table(".dynsym"), self._mini_debug_info()]
            return joined([*tables, self._stubs()])

    @cached_property
    def _sections(self) -> list[Any]:
        """Parsed once: it takes milliseconds a file."""
        return list(self._elf.iter_sections())

    def _section(self, name: str) -> Any:
        return next((section for section in self._sections if section.name == name), None)

    def _table(self, name: str) -> SymbolTable:
        section = self._section(name)
        if section is None or section["sh_type"] == "SHT_NOBITS":
            return NO_SYMBOLS
        rows = np.frombuffer(self._bytes(section), dtype=SYMBOL)
        names = self._sections[section["sh_link"]]
        ends = [part["sh_addr"] + part["sh_size"] for part in self._sections]
        return functions(rows, np.array(ends, dtype=np.uint64), self._data, names["sh_offset"])

    def _stubs(self) -> SymbolTable:
        sections = [
            section
            for section in self._sections
            if section.name.startswith(STUBS) and section["sh_flags"] & SHF_EXECINSTR
        ]
        starts = np.array([section["sh_addr"] for section in sections], dtype=np.uint64)
        sizes = np.array([section["sh_size"] for section in sections], dtype=np.uint64)
        names_at = self._sections[self._elf["e_shstrndx"]]["sh_offset"] if sections else 0
        names = np.array([section["sh_name"] for section in sections], dtype=np.int64)
        return SymbolTable(starts, starts + sizes, names + names_at, self._data)

    def _bytes(self, section: Any) -> memoryview:
        start, size = section["sh_offset"], section["sh_size"]
        return memoryview(self._data)[start : start + size - size % SYMBOL.itemsize]

    def _mini_debug_info(self) -> SymbolTable:
        """The symbols of local functions that a distribution leaves in a stripped file, compressed."""
        section = self._section(".gnu_debugdata")
        if section is None:
            return NO_SYMBOLS
        data = lzma.decompress(section.data())
        return Elf(io.BytesIO(data), data)._table(".symtab")


@contextmanager
def _reading() -> Iterator[None]:
    """pyelftools trusts what a file says; of a broken one it may raise whatever parsing raises."""
    try:
        yield
    except NotElfError:
        raise
    except Exception as error:
        raise NotElfError(str(error)) from error
