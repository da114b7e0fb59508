"""What a process has mapped that can be executed: lines of /proc/PID/maps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from collectors.shared.symbols.domains import Domain, domain_of
from collectors.shared.symbols.kernels import JIT_LIBRARY

DELETED: Final = " (deleted)"
VDSO: Final = "[vdso]"
MEMFD: Final = "/memfd:"
ANONYMOUS: Final = ("[anon", "//anon", "/dev/zero", "/SYSV", "[heap]", "[stack]")
"""How memory of no file may be called."""


@dataclass(frozen=True)
class Mapping:
    """A line that can be executed; ``end`` is exclusive."""

    start: int
    end: int
    offset: int  # of `start` in the file
    path: str  # as the line says; "" for anonymous memory

    @property
    def is_anonymous(self) -> bool:
        """Whether its code is in no file: it was made at run time."""
        return not self.path or self.path.startswith(ANONYMOUS)

    @property
    def library(self) -> str:
        """The file's name; "[vdso]", "memfd:NAME"; "jit" for anonymous memory."""
        if self.is_anonymous:
            return JIT_LIBRARY
        return self._path.rpartition("/")[2]

    @property
    def domain(self) -> Domain:
        """What its code is there for."""
        return Domain.JIT if self.is_anonymous else domain_of(self._path)

    @property
    def _path(self) -> str:
        path = self.path.removesuffix(DELETED)
        return path[1:].replace("/", "_") if path.startswith(MEMFD) else path

    @property
    def file(self) -> Path | None:
        """The file; None where there is none, or where another may stand in its place by now."""
        gone = self.path.endswith(DELETED) or self.path.startswith(MEMFD)
        return None if self.is_anonymous or gone or not self.path.startswith("/") else Path(self.path)


def executable_mappings(text: str) -> list[Mapping]:
    """From the text of /proc/PID/maps; a line that was cut short is left out."""
    found = []
    for line in text.splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) >= 5 and "x" in fields[1]:
            start, _, end = fields[0].partition("-")
            path = fields[5] if len(fields) > 5 else ""
            found.append(Mapping(int(start, 16), int(end, 16), int(fields[2], 16), path))
    return found
