"""Small ELF files, as a linker would write them."""

from __future__ import annotations

import lzma
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

TEXT_ADDRESS, TEXT_OFFSET, TEXT_SIZE = 0x2400, 0x400, 0x1000
"""Of the section with the code: its segment begins with it, as lld lays it out."""

FUNC, OBJECT, IFUNC = 2, 1, 10
LOCAL, GLOBAL, WEAK = 0, 1, 2


@dataclass(frozen=True)
class Symbol:
    """A row of a symbol table."""

    name: str
    address: int
    size: int
    kind: int = FUNC
    binding: int = GLOBAL
    section: int = 1  # .text; 0: defined elsewhere


@dataclass
class _Sections:
    """What follows the code."""

    data: bytearray = field(default_factory=bytearray)
    headers: list[tuple[bytes, int, int, int, int, int, int, int]] = field(default_factory=list)

    def add(self, name: bytes, kind: int, data: bytes, link: int = 0, entry: int = 0) -> int:
        offset = TEXT_OFFSET + TEXT_SIZE + len(self.data)
        self.data += data + bytes(-len(data) % 8)
        self.headers.append((name, kind, 0, 0, offset, len(data), link, entry))
        return len(self.headers) + 1  # null and .text come first

    def add_stubs(self, size: int) -> None:
        before_end = TEXT_SIZE - size
        self.headers.append((b".plt", 1, 6, TEXT_ADDRESS + before_end, TEXT_OFFSET + before_end, size, 0, 16))


def elf(
    symbols: Sequence[Symbol] = (),
    dynamic: Sequence[Symbol] = (),
    *,
    build_id: bytes | None = None,
    debugdata: bytes | None = None,
    stubs: int = 0,
) -> bytes:
    """A shared library with these tables; ``debugdata``: another file that MiniDebugInfo is made of; ``stubs``: so many
    bytes of them lie at the end of the code."""
    sections = _Sections()
    if stubs:
        sections.add_stubs(stubs)
    for kind, name, names, rows in ((2, b".symtab", b".strtab", symbols), (11, b".dynsym", b".dynstr", dynamic)):
        if rows:
            table, strings = _table(rows)
            sections.add(name, kind, table, link=len(sections.headers) + 3, entry=24)
            sections.add(names, 3, strings)
    if build_id is not None:
        note = struct.pack("<III4s", 4, len(build_id), 3, b"GNU\0") + build_id
        sections.add(b".note.gnu.build-id", 7, note)
    if debugdata is not None:
        sections.add(b".gnu_debugdata", 1, lzma.compress(debugdata))
    return _file(sections)


def _table(symbols: Sequence[Symbol]) -> tuple[bytes, bytes]:
    strings = bytearray(b"\0")
    rows = bytearray(24)
    for symbol in symbols:
        info = symbol.binding << 4 | symbol.kind
        rows += struct.pack("<IBBHQQ", len(strings), info, 0, symbol.section, symbol.address, symbol.size)
        strings += symbol.name.encode() + b"\0"
    return bytes(rows), bytes(strings)


def _file(sections: _Sections) -> bytes:
    names = b"\0.text\0" + b"".join(name + b"\0" for name, *_ in sections.headers) + b".shstrtab\0"
    names_at = sections.add(b".shstrtab", 3, names)
    end = TEXT_OFFSET + TEXT_SIZE + len(sections.data)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 64, end, 0, 64, 56, 1, 64, names_at + 1, names_at
    )
    segment = struct.pack("<IIQQQQQQ", 1, 5, TEXT_OFFSET, TEXT_ADDRESS, TEXT_ADDRESS, TEXT_SIZE, TEXT_SIZE, 0x1000)
    rows = bytes(64)
    rows += _section(names.index(b".text"), 1, 6, TEXT_ADDRESS, TEXT_OFFSET, TEXT_SIZE, 0, 0)
    for name, *fields in sections.headers:
        rows += _section(names.index(name + b"\0"), *fields)
    return (header + segment).ljust(TEXT_OFFSET, b"\0") + bytes(TEXT_SIZE) + bytes(sections.data) + rows


def _section(name: int, kind: int, flags: int, address: int, offset: int, size: int, link: int, entry: int) -> bytes:
    return struct.pack("<IIQQQQIIQQ", name, kind, flags, address, offset, size, link, 0, 4, entry)
