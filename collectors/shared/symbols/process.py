"""What a living process shows of its own code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from collectors.shared.symbols.jit import Known
from collectors.shared.symbols.mappings import VDSO, Mapping, executable_mappings
from collectors.shared.symbols.resolver import Resolver


def resolver(pid: int, known: Sequence[Known] = ()) -> Resolver:
    """Names the code that the process has mapped now. Raises ``OSError`` where there is no such process."""
    mappings = executable_mappings(Path(f"/proc/{pid}/maps").read_text())
    return Resolver(mappings, known, vdso=vdso())


def vdso() -> bytes:
    """The code that the kernel lends every process, the same to all of an architecture; empty where it is not seen."""
    try:
        own = executable_mappings(Path("/proc/self/maps").read_text())
        mapping = next((mapping for mapping in own if mapping.path == VDSO), None)
        return _memory(mapping) if mapping is not None else b""
    except OSError:
        return b""


def _memory(mapping: Mapping) -> bytes:
    with Path("/proc/self/mem").open("rb", buffering=0) as memory:
        memory.seek(mapping.start)
        return memory.read(mapping.end - mapping.start)
