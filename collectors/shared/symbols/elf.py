"""ELF files (64 bits, little-endian): build id, segments, and the symbols of functions.

pyelftools reads the file's header and the notes; numpy reads tables: of a symbol table libtorch has half a million
rows.
"""

from __future__ import annotations

import io
import lzma
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO, Final

import numpy as np
import numpy.typing as npt
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
"""An entry of the program header table: ``Elf64_Phdr`` of the System V ABI."""

SHT_NOTE: Final = 7
SHT_NOBITS: Final = 8
SECTION_HEADER: Final = np.dtype(
    [
        *(("name", "<u4"), ("type", "<u4"), ("flags", "<u8"), ("address", "<u8"), ("offset", "<u8"), ("size", "<u8")),
        *(("link", "<u4"), ("info", "<u4"), ("alignment", "<u8"), ("entry_size", "<u8")),
    ]
)
"""An entry of the section header table, ``Elf64_Shdr``. pyelftools would parse what each leads to, hash tables word by
word: tens of milliseconds a file."""

_LONGEST_NAME: Final = 256
"""Of a section, in bytes: whatever is looked for here is shorter."""

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
            for number in np.flatnonzero(self._sections["type"] == SHT_NOTE).tolist():
                section = self._elf.get_section(number)
                for note in section.iter_notes() if isinstance(section, NoteSection) else ():
                    if note["n_type"] == "NT_GNU_BUILD_ID":
                        return str(note["n_desc"])
        return None

    def segments(self) -> list[Segment]:
        """The executable ones."""
        with _reading():
            return [
                Segment(*(int(part[name]) for name in ("offset", "address", "length", "alignment")))
                for part in self._headers(PROGRAM_HEADER, "e_ph", self._elf.num_segments())
                if part["type"] == PT_LOAD and part["flags"] & PF_X
            ]

    def contents(self, name: str) -> tuple[int, bytes] | None:
        """Of a section: where the file wants it, and its bytes; None where the file has none such."""
        with _reading():
            section = self._section(name)
            return (int(section["address"]), bytes(self._bytes(section))) if section is not None else None

    def symbols(self) -> SymbolTable:
        """The functions by ``.symtab``; by ``.dynsym`` and MiniDebugInfo where that was stripped. Sections of stubs,
        which call other libraries, are functions with the section's name."""
        with _reading():
            whole = self._table(".symtab")
            tables = [whole] if len(whole) else [self._table(".dynsym"), self._mini_debug_info()]
            return joined([*tables, self._stubs()])

    def _headers(self, kind: np.dtype[np.void], prefix: str, count: int) -> npt.NDArray[np.void]:
        """A table of headers, whose place and entry size the file's own header tells under that prefix."""
        if not count:
            return np.empty(0, dtype=kind)
        if self._elf[f"{prefix}entsize"] != kind.itemsize:
            raise NotElfError(f"its headers ({prefix}entsize) have another size than {kind.itemsize} bytes")
        return np.frombuffer(self._data, dtype=kind, count=count, offset=self._elf[f"{prefix}off"])

    @cached_property
    def _sections(self) -> npt.NDArray[np.void]:
        return self._headers(SECTION_HEADER, "e_sh", self._elf.num_sections())

    @cached_property
    def _names(self) -> list[str]:
        """Of the sections."""
        if not len(self._sections):
            return []
        names = self._bytes(self._sections[self._elf.get_shstrndx()])
        starts = self._sections["name"].tolist()
        found = [bytes(names[at : at + _LONGEST_NAME]).split(b"\0", 1)[0] for at in starts]
        return [name.decode(errors="replace") for name in found]

    def _section(self, name: str) -> np.void | None:
        """None where the file has none of that name, or not its contents."""
        if name not in self._names:
            return None
        found: np.void = self._sections[self._names.index(name)]
        return found if found["type"] != SHT_NOBITS else None

    def _table(self, name: str) -> SymbolTable:
        section = self._section(name)
        if section is None:
            return NO_SYMBOLS
        found = self._bytes(section)
        rows = np.frombuffer(found, dtype=SYMBOL, count=len(found) // SYMBOL.itemsize)
        ends = self._sections["address"] + self._sections["size"]
        return functions(rows, ends, self._data, int(self._sections[section["link"]]["offset"]))

    def _stubs(self) -> SymbolTable:
        called = np.array([name.startswith(STUBS) for name in self._names], dtype=bool)
        found = self._sections[called & ((self._sections["flags"] & SHF_EXECINSTR) != 0)]
        starts = found["address"].astype(np.uint64)
        names_at = int(self._sections[self._elf.get_shstrndx()]["offset"]) if len(found) else 0
        return SymbolTable(starts, starts + found["size"], found["name"].astype(np.int64) + names_at, self._data)

    def _bytes(self, section: np.void) -> memoryview:
        start, size = int(section["offset"]), int(section["size"])
        return memoryview(self._data)[start : start + size]

    def _mini_debug_info(self) -> SymbolTable:
        """The symbols of local functions that a distribution leaves in a stripped file, compressed."""
        section = self._section(".gnu_debugdata")
        if section is None:
            return NO_SYMBOLS
        data = lzma.decompress(self._bytes(section))
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
