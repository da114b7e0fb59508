"""The C module's source, brought together from its parts."""

from __future__ import annotations

from importlib import resources
from typing import Final

from collectors.instrumented.facts import Fact

PARTS: Final = (
    "layout.h",
    "stalker.h",
    "cache.h",
    "decode.c",
    "writing.c",
    "undecoded.c",
    "increment.c",
    "epilog.c",
    "contexts.c",
    "rounds.c",
    "rcx_branches.c",
    "cache_threads.c",
    "cache_registers.c",
    "far_operands.c",
    "cache_vectors.c",
    "cache_operands.c",
    "cache_encoded.c",
    "cache_record.c",
    "mappings.c",
    "guards.c",
    "rewritten.c",
    "clocks.c",
    "signals.c",
    "changes.c",
    "afterwards.c",
    "cache_edges.c",
    "edges.c",
    "transform.c",
)
"""In the order in which each uses only what stands before it."""


def module_source() -> str:
    """One translation unit: the facts' numbers, then every part."""
    names = ", ".join(fact.name for fact in Fact)
    parts = [f"enum Fact {{ {names}, FACTS }};\n"]
    parts += [f'#line 1 "{name}"\n{_read(name)}' for name in PARTS]
    return "\n".join(parts)


def simulator_source() -> str:
    """The cache simulator: it stands alone, so that another compiler can take it."""
    return "\n".join(f'#line 1 "{name}"\n{_read(name)}' for name in ("cache.h", "cache.c"))


def agent_source() -> str:
    """The script that compiles the module."""
    return _read("agent.js")


def _read(name: str) -> str:
    return resources.files("collectors.instrumented").joinpath("native", name).read_text(encoding="utf-8")
