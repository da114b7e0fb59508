"""The collector ``allocator``: what malloc holds at the edges of iterations.

torch's own account is of its tensors; this one has all memory of the process that malloc gave, oneDNN's and Python's
too, and what it keeps free instead of giving it back.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Final

from collectors.allocator.libraries import Library, Statistics, found
from hwprof.collector.contract import Availability, Collected, Collector, Note, NoteKind, PassContext, Tool
from hwprof.run.details import AllocatorDetail

HUGE_PAGES: Final = Path("/sys/kernel/mm/transparent_hugepage/enabled")

SETTINGS: Final = re.compile(r"(MALLOC_\w+_?|GLIBC_TUNABLES|JE_MALLOC_CONF|MALLOC_CONF|TCMALLOC_\w+)")

SLOW_NS: Final = 200_000
"""A reading that takes longer would leave its traces in the iteration that follows: glibc walks all that is free."""

TRIED: Final = 3


class AllocatorCollector(Collector):
    """Reads it before and after each iteration that is measured, and at the begin and end."""

    def __init__(self) -> None:
        self._library: Library | None = None
        self._rows: list[tuple[int, Statistics]] = []
        self._reading_ns = 0

    def availability(self) -> Availability:
        """Where the allocator tells something."""
        if found() is None:
            return Availability.no("this C library's malloc tells nothing of what it holds")
        return Availability(tools=_tools())

    def start(self, context: PassContext) -> None:
        """How long a reading takes, and the first one."""
        self._library = found()
        if self._library is None:
            return
        times_ns = []
        for _ in range(TRIED):
            begin_ns = time.monotonic_ns()
            self._library.read()
            times_ns.append(time.monotonic_ns() - begin_ns)
        self._reading_ns = min(times_ns)
        self._read()

    def iteration_edge(self) -> None:
        """A reading, where it is quick."""
        if self._reading_ns <= SLOW_NS:
            self._read()

    def stop(self) -> Collected:
        """All readings as ``series``."""
        library = self._library
        if library is None:
            return Collected()
        self._read()
        import polars as pl  # takes memory of its own

        rows = [
            (time_ns, f"allocator/{name}", "B", float(value))
            for time_ns, statistics in self._rows
            for name, value in statistics.items()
        ]
        series = pl.DataFrame(rows, schema=["time_ns", "name", "unit", "value"], orient="row")
        slow = f"a reading takes {self._reading_ns / 1e3:.0f} us: taken at the begin and the end only"
        return Collected(
            tables={"series": series},
            notes=[Note(NoteKind.INCOMPLETE, slow, library.name)] if self._reading_ns > SLOW_NS else [],
            detail=AllocatorDetail(
                allocator=library.name,
                reading_us=self._reading_ns / 1e3,
                huge_pages=huge_pages(),
                settings={name: value for name, value in os.environ.items() if SETTINGS.fullmatch(name)},
            ),
            tools=list(_tools()),
        )

    def _read(self) -> None:
        if self._library is not None:
            self._rows.append((time.monotonic_ns(), self._library.read()))


def _tools() -> tuple[Tool, ...]:
    """The library; glibc says which version it is."""
    library = found()
    if library is None:
        return ()
    name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    return (Tool(name=library.name, version=version if name == library.name else None),)


def huge_pages(file: Path = HUGE_PAGES) -> str | None:
    """When the kernel gives huge pages: ``always``, ``madvise`` or ``never``; None: it does not say."""
    try:
        chosen = re.search(r"\[(\w+)\]", file.read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError):
        return None
    return chosen[1] if chosen else None
