"""The caches that are modelled: this machine's, or another processor's as the user describes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from hwprof.errors import UsageError
from hwprof.run.manifest import Cache

LEVELS: Final = ("l1", "l2", "llc")
"""As the user names them, nearest first."""

EXAMPLE: Final = "l1=48K/12,l2=2M/16,llc=32M/16"

_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_ENTRY: Final = re.compile(
    r"(?P<level>\w+)=(?P<size>\d{1,15})(?P<unit>[KMG]?)/(?P<ways>\d{1,15})(?:/(?P<line>\d{1,15}))?", re.I
)
_LINE: Final = 64
_LONGEST_LINE: Final = 4096
_MOST_LINES: Final = 1 << 24
"""Of a level: 1 GiB with lines of 64 bytes. Every instrumented thread has memory for its own."""


class Level(msgspec.Struct, frozen=True):
    """A set-associative cache."""

    size_bytes: int
    ways: int
    line_bytes: int = _LINE

    @property
    def sets(self) -> int:
        """How many there are."""
        return self.size_bytes // (self.ways * self.line_bytes)

    def __str__(self) -> str:
        """As the option has it."""
        unit = max((unit for unit, size in _UNITS.items() if self.size_bytes % size == 0), key=_UNITS.__getitem__)
        return f"{self.size_bytes // _UNITS[unit]}{unit}/{self.ways}"


class Geometry(msgspec.Struct, frozen=True):
    """The levels that an access goes through. Without ``llc``, L2 is the last one."""

    l1: Level
    l2: Level
    llc: Level | None
    sharing: int  # how many threads have a last level in common
    given: tuple[str, ...] = ()  # the levels that are not this machine's

    @property
    def levels(self) -> tuple[Level, ...]:
        """Nearest first."""
        return (self.l1, self.l2) if self.llc is None else (self.l1, self.l2, self.llc)

    @property
    def line_bytes(self) -> int:
        """The same at all levels."""
        return self.l1.line_bytes

    def __str__(self) -> str:
        """As the option has it."""
        return ",".join(f"{name}={level}" for name, level in zip(LEVELS, self.levels, strict=False))


def parse(text: str) -> dict[str, Level]:
    """``l1=48K/12,l2=2M/16,llc=32M/16``: size and ways, and the bytes of a line if they are not 64; levels that are not
    named are this machine's. Raises ``UsageError``."""
    found: dict[str, Level] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise UsageError(f"--cache: {entry!r} is not LEVEL=SIZE/WAYS", f"for example --cache {EXAMPLE}")
        name = match["level"].lower()
        if name not in LEVELS:
            raise UsageError(f"--cache: no level is called {match['level']!r}", f"one of {', '.join(LEVELS)}")
        if name in found:
            raise UsageError(f"--cache names {name} twice")
        size = int(match["size"]) * _UNITS[match["unit"].upper()]
        found[name] = _checked(entry, Level(size, int(match["ways"]), int(match["line"] or _LINE)))
    if not found:
        raise UsageError("--cache names no level", f"for example --cache {EXAMPLE}")
    return found


def _checked(entry: str, level: Level) -> Level:
    line = level.line_bytes
    if not 8 <= line <= _LONGEST_LINE or line & (line - 1):
        raise UsageError(f"--cache: {entry}: a line is a power of two of 8 to {_LONGEST_LINE} bytes")
    if level.size_bytes > _MOST_LINES * line:
        raise UsageError(f"--cache: {entry}: more than {_MOST_LINES} lines", f"for example --cache {EXAMPLE}")
    if level.ways < 1 or level.sets < 1 or level.sets * level.ways * line != level.size_bytes:
        raise UsageError(
            f"--cache: {entry}: the size is no multiple of {level.ways} ways of {line} bytes",
            "SIZE = sets x WAYS x line; K, M and G are powers of 1024",
        )
    return level


def choose(caches: Sequence[Cache], given: dict[str, Level]) -> Geometry:
    """The model's levels: the given ones, and of the others what this machine has (``machine.caches()``). Raises
    ``UsageError`` where a level is known from neither, or lines differ."""
    own = _own(caches)
    levels = {name: given.get(name) or _level(own.get(name)) for name in LEVELS}
    for name in LEVELS[:2]:
        if levels[name] is None:
            raise UsageError(f"the system does not describe this machine's {name} cache", f"--cache {EXAMPLE}")
    l1, l2, llc = (levels[name] for name in LEVELS)
    assert l1 is not None
    assert l2 is not None
    lines = {level.line_bytes for level in (l1, l2, llc) if level is not None}
    if len(lines) > 1:
        sizes = " and ".join(map(str, sorted(lines)))
        raise UsageError(
            f"--cache: lines of {sizes} bytes do not go together", "give all levels with the same line: l1=64K/4/128,…"
        )
    last = own.get("llc" if llc is not None else "l2")
    return Geometry(l1, l2, llc, max(1, last.shared_by) if last is not None else 1, tuple(given))


def _own(caches: Sequence[Cache]) -> dict[str, Cache]:
    """This machine's by the user's names: the last level is the one behind L2."""
    data = sorted((cache for cache in caches if cache.kind != "instruction"), key=lambda cache: cache.level)
    return {LEVELS[min(cache.level, len(LEVELS)) - 1]: cache for cache in data}


def _level(cache: Cache | None) -> Level | None:
    """None where the system does not describe it, or something that no cache can be."""
    if cache is None or not cache.ways:
        return None
    line = cache.line_bytes or _LINE
    sets = cache.size_bytes // (cache.ways * line)
    return Level(sets * cache.ways * line, cache.ways, line) if sets else None
