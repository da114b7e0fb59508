"""The compiled simulator ``native/cache.c``: by the C compiler, or else by frida, whose code is several times
slower but which is there anyway."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from collectors.instrumented.engine import Engine, function_address
from collectors.instrumented.source import simulator_source
from hwprof.c_compiler import NoLibraryError, compiled
from hwprof.errors import first_line

FUNCTION: Final = "cache_consume"


@dataclass(frozen=True)
class Simulator:
    """Where it is in memory, and who made it."""

    address: int
    compiler: str  # "cc", or "frida" and why
    library: Path | None = None  # None: frida made it
    why_frida: NoLibraryError | None = None


def load(engine: Engine) -> Simulator:
    """Compiled at first use, then from the cache folder."""
    source = simulator_source()
    try:
        path = compiled("cache-model", source.encode())
        library = ctypes.CDLL(str(path))
        return Simulator(function_address(library[FUNCTION]), "cc", path)
    except (NoLibraryError, OSError, AttributeError) as error:
        why = error if isinstance(error, NoLibraryError) else NoLibraryError(first_line(error))
        return Simulator(engine.compile(source, FUNCTION), f"frida ({why})", why_frida=why)
