"""Names and homes of functions: JIT kernels by their maker's map, everything else by its file."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from collectors.callgrind.profile import NO_FILE, Function
from hwprof.run.schema import JIT_MODULE, UNKNOWN_MODULE

MAP: Final = "perf.map"


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

    def name_at(self, address: int) -> str | None:
        """The kernel that has this address in it."""
        place = bisect_right(self._starts, address) - 1
        if place < 0:
            return None
        end, name = self._kernels[place]
        return name if address < end else None


def kernel_and_module(function: Function, kernels: KernelMap) -> tuple[str, str]:
    """What a function is called in the kernels table, and its module."""
    module = Path(function.file).name if function.file != NO_FILE else UNKNOWN_MODULE
    if not function.name.startswith("0x"):
        return function.name, module
    address = int(function.name, 16)  # within the file, where there is one
    if module != UNKNOWN_MODULE:
        return f"{module}+{address:#x}", module
    kernel = kernels.name_at(address)
    return (kernel, JIT_MODULE) if kernel is not None else (f"{address:#x}", UNKNOWN_MODULE)


def map_of(pid: int) -> Path:
    """Where oneDNN, and everybody who follows perf's convention, writes the map of a process."""
    return Path(f"/tmp/perf-{pid}.map")
