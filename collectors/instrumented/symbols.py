"""Whose code an address is: a JIT kernel by oneDNN's perf map, else a library and, where its symbol table tells, a
function."""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

Addresses = npt.NDArray[np.uint64]

JIT_LIBRARY: Final = "jit"
UNNAMED: Final = -1


class Domain(StrEnum):
    """What code is there for."""

    JIT = "jit"  # code made at run time: oneDNN's, fbgemm's
    TORCH = "torch"
    OPENMP = "openmp"  # waiting for other threads, and bringing them to work
    PYTHON = "python"
    SYSTEM = "system"  # libc, libm, libstdc++, the loader, the vdso
    OTHER = "other"
    OWN = "own"  # what counts, which is not counted


LIBRARIES: Final[tuple[tuple[Domain, tuple[str, ...]], ...]] = (
    (Domain.TORCH, ("libtorch", "libc10", "libcaffe2", "libshm", "_C.", "libmkl", "libdnnl")),
    (Domain.OPENMP, ("libgomp", "libiomp", "libomp")),
    (Domain.PYTHON, ("python", "libpython", "_ctypes.", "libffi")),
    (
        Domain.SYSTEM,
        ("libc.", "libc-", "libm.", "libm-", "libstdc++", "libgcc_s", "libpthread", "libdl", "ld-", "[vdso]", "librt"),
    ),
    (Domain.OWN, ("memfd:frida", "frida", "_frida")),
)
"""The beginnings of files' names; what matches none is ``OTHER``."""


@dataclass(frozen=True)
class Kernel:
    """A piece of code with a name: a JIT kernel or a function; ``name`` is None for what a library does not name."""

    domain: Domain
    library: str  # the file's name, or "jit"
    name: str | None
    address: int | None  # of a JIT kernel or a function, in this process


@dataclass(frozen=True)
class Known:
    """A place whose kernel is known without looking at files."""

    start: int
    end: int
    kernel: Kernel


@dataclass(frozen=True)
class Mapping:
    """A line of /proc/PID/maps that can be executed."""

    start: int
    end: int
    offset: int
    path: str  # "" for anonymous memory


@dataclass(frozen=True)
class Symbols:
    """Functions sorted by address, as the file has them."""

    starts: Addresses
    ends: Addresses
    name_offsets: npt.NDArray[np.uint32]
    names: bytes

    def find(self, addresses: Addresses) -> npt.NDArray[np.int64]:
        """For each address the function around it, or ``UNNAMED``."""
        if not len(self.starts):
            return np.full(len(addresses), UNNAMED, dtype=np.int64)
        found = np.searchsorted(self.starts, addresses, side="right").astype(np.int64) - 1
        inside = (found >= 0) & (addresses < self.ends[found])
        return np.where(inside, found, UNNAMED)

    def name(self, number: int) -> str:
        """Demangled."""
        start = int(self.name_offsets[number])
        return demangle(self.names[start : self.names.index(b"\0", start)].decode(errors="replace"))


NO_SYMBOLS: Final = Symbols(np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.uint32), b"")


def name_addresses(
    addresses: Addresses, mappings: Sequence[Mapping], known: Sequence[Known]
) -> tuple[npt.NDArray[np.int64], list[Kernel]]:
    """For each address the number of its kernel, and the kernels. Of ``known`` places that overlap the last one is
    right: a perf map may name an address twice."""
    kernels: dict[Kernel, int] = {}
    numbers = np.full(len(addresses), UNNAMED, dtype=np.int64)
    for place in known:
        within = (addresses >= place.start) & (addresses < place.end)
        if within.any():
            numbers[within] = kernels.setdefault(place.kernel, len(kernels))
    for mapping in mappings:
        within = (addresses >= mapping.start) & (addresses < mapping.end) & (numbers == UNNAMED)
        if within.any():
            _name_in_mapping(addresses, within, mapping, kernels, numbers)
    if (unknown := numbers == UNNAMED).any():
        numbers[unknown] = kernels.setdefault(Kernel(Domain.OTHER, "unknown", None, None), len(kernels))
    return numbers, list(kernels)


def _name_in_mapping(
    addresses: Addresses,
    within: npt.NDArray[np.bool_],
    mapping: Mapping,
    kernels: dict[Kernel, int],
    numbers: npt.NDArray[np.int64],
) -> None:
    places = np.flatnonzero(within)
    if not mapping.path:
        unnamed = Kernel(Domain.JIT, JIT_LIBRARY, None, None)
        numbers[places] = kernels.setdefault(unnamed, len(kernels))
        return
    library = Path(mapping.path.removesuffix(" (deleted)")).name
    domain = domain_of(mapping.path)
    named = NO_SYMBOLS if domain in (Domain.PYTHON, Domain.OTHER, Domain.OWN) else read_symbols(mapping.path)
    bias = mapping.start - _virtual_address(mapping.path, mapping.offset) if len(named.starts) else 0
    found = named.find(addresses[places] - np.uint64(bias))
    for number in np.unique(found).tolist():
        kernel = Kernel(domain, library, None, None)
        if number != UNNAMED:
            kernel = Kernel(domain, library, named.name(number), int(named.starts[number]) + bias)
        numbers[places[found == number]] = kernels.setdefault(kernel, len(kernels))


def domain_of(path: str) -> Domain:
    """By the file's name."""
    name = path.removeprefix("/").rpartition("/")[2] if "memfd:" not in path else path.lstrip("/")
    return next((domain for domain, begins in LIBRARIES if name.startswith(begins)), Domain.OTHER)


def executable_mappings(text: str) -> list[Mapping]:
    """From the text of /proc/PID/maps."""
    found = []
    for line in text.splitlines():
        fields = line.split(maxsplit=5)
        if "x" in fields[1]:
            start, end = (int(address, 16) for address in fields[0].split("-"))
            found.append(Mapping(start, end, int(fields[2], 16), fields[5] if len(fields) > 5 else ""))
    return found


def read_perf_map(text: str) -> list[Known]:
    """The kernels of a perf map (lines of address, size, name; hexadecimal); a line that was cut short is left out."""
    known = []
    for line in text.splitlines():
        fields = line.split(maxsplit=2)
        if len(fields) == 3:
            start, size = int(fields[0], 16), int(fields[1], 16)
            known.append(Known(start, start + size, Kernel(Domain.JIT, JIT_LIBRARY, fields[2], start)))
    return known


# --- ELF, 64 bits, little-endian

SECTION: Final = struct.Struct("<IIQQQQIIQQ")
SEGMENT: Final = struct.Struct("<IIQQQQQQ")
SYMBOL: Final = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
SYMBOL_TABLE, DYNAMIC_SYMBOLS = 2, 11
PT_LOAD: Final = 1
FUNCTIONS: Final = (2, 10)  # STT_FUNC, STT_GNU_IFUNC


@cache
def read_symbols(path: str) -> Symbols:
    """The functions of an ELF file, by its symbol table or, stripped, by its dynamic one; none if it cannot be read."""
    try:
        with Path(path).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _symbols(data)
    except (OSError, ValueError, struct.error):
        return NO_SYMBOLS


def _symbols(data: mmap.mmap) -> Symbols:
    if data[:5] != b"\x7fELF\x02":
        return NO_SYMBOLS
    (table_at,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [SECTION.unpack_from(data, table_at + size * number) for number in range(count)]
    for wanted in (SYMBOL_TABLE, DYNAMIC_SYMBOLS):
        for section in sections:
            if section[1] == wanted:
                names = sections[section[6]]
                rows = np.frombuffer(data[section[4] : section[4] + section[5]], dtype=SYMBOL)
                return _functions(rows, data[names[4] : names[4] + names[5]])
    return NO_SYMBOLS


def _functions(rows: npt.NDArray[np.void], names: bytes) -> Symbols:
    rows = rows[np.isin(rows["info"] & 15, FUNCTIONS) & (rows["section"] != 0) & (rows["size"] > 0)]
    rows = rows[np.argsort(rows["value"], kind="stable")]
    return Symbols(
        rows["value"].astype(np.uint64), (rows["value"] + rows["size"]).astype(np.uint64), rows["name"].copy(), names
    )


@cache
def _virtual_address(path: str, offset: int) -> int:
    """Where the file wants what stands at ``offset``."""
    with Path(path).open("rb") as file:
        head = file.read(64)
        (table_at,) = struct.unpack_from("<Q", head, 32)
        size, count = struct.unpack_from("<HH", head, 54)
        file.seek(table_at)
        table = file.read(size * count)
    for number in range(count):
        kind, _, place, address, _, length, _, _ = SEGMENT.unpack_from(table, size * number)
        if kind == PT_LOAD and place <= offset < place + max(length, 1) + 4096:
            return int(address + offset - place)
    return offset


def demangle(name: str) -> str:
    """A C++ name as it is written; as it is where it is none, or where the process has no C++ library to ask."""
    library = _cpp_library()
    if library is None or not name.startswith("_Z"):
        return name
    status = ctypes.c_int()
    made = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if not made:
        return name
    try:
        return ctypes.string_at(made).decode(errors="replace")
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(made))


@cache
def _cpp_library() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL("libstdc++.so.6")
    except OSError:
        return None
    demangler = library["__cxa_demangle"]
    demangler.restype = ctypes.c_void_p
    demangler.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p]
    library.__cxa_demangle = demangler  # type: ignore[attr-defined]
    return library
