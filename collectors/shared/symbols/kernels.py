"""A named code range: what tables call a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from collectors.shared.symbols.domains import Domain

JIT_LIBRARY: Final = "jit"
"""In the place of a library, for code made at run time."""

UNKNOWN_LIBRARY: Final = "[unknown]"
"""For code at an address where the process has none: it was unmapped, or never there."""


@dataclass(frozen=True)
class Kernel:
    """A function or a JIT kernel. Without a name it stands for all code of its library that has none."""

    domain: Domain
    library: str  # the file's name; "jit"; "[kernel]" or a kernel module in brackets; "[unknown]"
    name: str | None  # short: "at::native::silu_kernel"
    full_name: str | None = None  # with template arguments and parameters, or a JIT kernel's number; None: as `name`
    address: int | None = None  # where it begins in this process; None in the operating system


UNKNOWN: Final = Kernel(Domain.OTHER, UNKNOWN_LIBRARY, None)
