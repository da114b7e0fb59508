"""Names and homes of functions: JIT kernels by their maker's map, everything else by its file."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from collectors.callgrind.profile import NO_FILE, Function

MAP: Final = "perf.map"
JIT, OTHER, UNKNOWN = "jit", "other", "unknown"

DOMAINS: Final[dict[str, tuple[str, ...]]] = {
    "torch": ("libtorch", "libc10", "libcaffe2", "libshm", "_C.", "libmkl", "libdnnl"),
    "openmp": ("libgomp", "libiomp", "libomp"),
    "python": ("python", "libpython", "_ctypes.", "libffi"),
    "system": ("libc.", "libc-", "libm.", "libm-", "libstdc++", "libgcc_s", "libpthread", "libdl", "ld-", "librt"),
}
"""The beginnings of files' names."""


class KernelMap:
    """Where JIT kernels lie, from lines of a perf map: ``ADDRESS SIZE NAME``, both hexadecimal.

    Later lines win: an address is used again when a kernel is dropped.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        found: dict[int, tuple[int, str]] = {}
        for line in lines:
            fields = line.split(None, 2)
            if len(fields) == 3:
                start = int(fields[0], 16)
                found[start] = (start + int(fields[1], 16), fields[2].strip())
        self._starts = sorted(found)
        self._kernels = [found[start] for start in self._starts]

    @classmethod
    def read(cls, path: Path) -> KernelMap:
        """From a file; an empty map where there is none."""
        return cls(path.read_text(errors="replace").splitlines() if path.exists() else ())

    def at(self, address: int) -> tuple[int, str] | None:
        """Begin and name of the kernel that has this address in it."""
        place = bisect_right(self._starts, address) - 1
        if place < 0:
            return None
        end, name = self._kernels[place]
        return (self._starts[place], name) if address < end else None


class Kernel(NamedTuple):
    """A row of the ``kernels`` table without its number."""

    domain: str
    library: str
    name: str
    address: int | None


def kernel_of(function: Function, kernels: KernelMap) -> Kernel:
    """What a function is in the tables: a JIT kernel by the map, else by its library, with its address within that
    where it has no symbol."""
    nameless = function.name.startswith("0x")
    address = int(function.name, 16) if nameless else None
    if function.file != NO_FILE:
        library = Path(function.file).name
        name = f"{library}+{address:#x}" if address is not None else function.name
        return Kernel(domain_of(library), library, name, None)
    found = kernels.at(address) if address is not None else None
    if found is not None:
        return Kernel(JIT, JIT, found[1], found[0])
    return Kernel(OTHER, UNKNOWN, function.name if address is None else f"{address:#x}", address)


def domain_of(library: str) -> str:
    """What a library is there for."""
    return next((domain for domain, beginnings in DOMAINS.items() if library.startswith(beginnings)), OTHER)


def map_of(pid: int) -> Path:
    """Where oneDNN, and everybody who follows perf's convention, writes the map of a process."""
    return Path(f"/tmp/perf-{pid}.map")
