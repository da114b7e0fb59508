"""The compiled simulator ``native/cache.c``: by the C compiler, or else by frida, whose code is several times
slower but which is there anyway."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Final

from collectors.instrumented.engine import Engine, function_address
from collectors.instrumented.source import simulator_source
from collectors.shared.c_compiler import NoLibraryError, compiled

FUNCTION: Final = "cache_consume"


@dataclass(frozen=True)
class Simulator:
    """Where it is in memory, and who made it."""

    address: int
    compiler: str  # "cc", or "frida" and why


def load(engine: Engine) -> Simulator:
    """Compiled at first use, then from the cache folder."""
    source = simulator_source()
    try:
        library = ctypes.CDLL(str(compiled("cache-model", source.encode())))
        return Simulator(function_address(library[FUNCTION]), "cc")
    except (NoLibraryError, OSError, AttributeError) as why:
        return Simulator(engine.compile(source, FUNCTION), f"frida ({why})")
