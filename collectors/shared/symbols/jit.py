"""Code made at run time, named by whoever made it: maps as perf reads them."""

from __future__ import annotations

import os
import re
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from collectors.shared.symbols.demangle import demangle
from collectors.shared.symbols.domains import Domain
from collectors.shared.symbols.kallsyms import FIRST_ADDRESS
from collectors.shared.symbols.kernels import JIT_LIBRARY, Kernel
from collectors.shared.symbols.shorten import shorten
from hwprof.processes import perf_map_of

PERF_MAP: Final = "perf.map"
"""What it is called among the raw files of a pass."""

_ORDINAL: Final = re.compile(r"^([A-Za-z_]\w*)\.(\d+)$")
"""oneDNN counts what it makes: one name is one code range of the process."""


@dataclass(frozen=True)
class Known:
    """A place whose kernel is known without looking at files; ``end`` is exclusive."""

    start: int
    end: int
    kernel: Kernel


def split_ordinal(name: str) -> tuple[str, int | None]:
    """oneDNN's name of a kernel, and its number in the process: another process counts otherwise."""
    found = _ORDINAL.match(name)
    return (found[1], int(found[2])) if found else (name, None)


def jit_code(start: int, size: int, name: str) -> Known:
    """What lies there, as a kernel. Only C++ names are shortened: other languages' may have blanks and brackets."""
    full = demangle(name)
    short = shorten(full) if full != name else split_ordinal(name)[0]
    return Known(start, start + size, Kernel(Domain.JIT, JIT_LIBRARY, short, None if full == short else full, start))


def read_perf_map(text: str) -> list[Known]:
    """The kernels of a perf map (lines of address, size, name; hexadecimal) in its order; lines that are cut short, or
    are no such lines, are left out."""
    known = []
    for line in text.splitlines():
        fields = line.split(maxsplit=2)
        if len(fields) == 3:
            try:
                start, size = int(fields[0], 16), int(fields[1], 16)
            except ValueError:
                continue
            if size > 0 and 0 <= start < FIRST_ADDRESS - size:
                known.append(jit_code(start, size, fields[2].strip()))
    return known


def keep_perf_map(pid: int, folder: Path) -> list[Known]:
    """The kernels of a process's perf map, which moves to ``folder``; none where it wrote none: in /tmp anybody may
    have put a pipe or a link of that name."""
    kept, written = folder / PERF_MAP, perf_map_of(pid)
    with suppress(OSError):
        status = written.lstat()
        if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
            shutil.move(written, kept)
    return read_perf_map(kept.read_text(errors="replace")) if kept.exists() else []
