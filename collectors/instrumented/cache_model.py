"""The cache model of a pass: which caches, who simulates them, and what came out.

Every thread has an L1D and an L2 of its own; the last level belongs to as many threads as the system lists processors
share it. Lines go to every level that missed them, the least recently used one makes room. Nothing is prefetched, and
a thread that writes takes a line from no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from collectors.instrumented.cache_geometry import Geometry, Level, choose, parse
from collectors.instrumented.detail import CacheModelDetail
from hwprof import c_compiler
from hwprof.collector.contract import Note, NoteKind, Tool
from hwprof.errors import HwprofError
from hwprof.hardware import machine

if TYPE_CHECKING:
    from collectors.instrumented.accounting import Amounts, Sums
    from collectors.instrumented.cache_events import CacheEvent
    from collectors.instrumented.cache_simulator import Simulator
    from collectors.instrumented.engine import Engine
    from collectors.instrumented.log import Integers, Log
    from collectors.instrumented.memory import Entries
    from collectors.instrumented.spill import Spill
    from collectors.shared.symbols.kernels import Kernel


def wanted(options: Mapping[str, Any]) -> Geometry | None:
    """The caches to simulate, from a collector's options; None: none. Raises ``UsageError``."""
    given: dict[str, Level] = {}
    if text := options.get("cache"):
        given = parse(text)
    if not given and not options.get("cache_model"):
        return None
    return choose(machine.caches(), given)


class CacheModel:
    """The model of one engine, which must have been made with its geometry."""

    def __init__(self, geometry: Geometry, engine: Engine) -> None:
        """Loads the simulator; from here on what is newly instrumented is recorded. Raises ``HwprofError``."""
        from collectors.instrumented import cache_simulator

        self.geometry = geometry
        self._memory = engine.cache_memory
        self._simulator: Simulator = cache_simulator.load(engine)
        self._memory.begin(self._simulator.address)
        self._accesses = self._untraced = 0  # of all that was instrumented

    def end(self, edges: int) -> None:
        """Nothing is instrumented any more. Raises ``HwprofError`` where not all that was executed was simulated."""
        from collectors.instrumented.cache_memory import COUNTS

        model = self._memory.model
        wrong = None
        if model.lost_threads:
            wrong = "there is no memory for the caches of a thread"
        elif model.lost:
            wrong = "there is more code than the cache model has room for"
        elif model.log_overflowed:
            wrong = "there is more to log than the cache model has room for"
        if wrong is not None:
            raise HwprofError(wrong, "leave out --cache-model")
        counts = self._memory.entries(edges)[0]["counts"]
        self._accesses, self._untraced = (int(counts[:, COUNTS.index(name)].sum()) for name in ("accesses", "untraced"))

    def events(self) -> Sequence[CacheEvent]:
        """The events it reports."""
        from collectors.instrumented.cache_events import events

        return events(self.geometry)

    def add_up(
        self, log: Log, kernel_of: Integers, kernels: Sequence[Kernel], nobodys: Sequence[int], spill: Spill
    ) -> Sums:
        """What the caches did, as ``accounting.add_up``."""
        import numpy as np

        from collectors.instrumented.accounting import sum_entries
        from collectors.instrumented.cache_memory import COUNTS

        def amounts_of(entries: Entries) -> Amounts:
            counts = entries["counts"]
            return lambda count: (np.arange(len(counts)), counts[:, count].astype(np.int64))

        def made_of(entries: Entries) -> list[Integers]:
            return list(entries["counts"].T)

        entries, ends = self._memory.entries(log.edges)
        return sum_entries(log, entries, ends, kernel_of, kernels, len(COUNTS), amounts_of, made_of, nobodys, spill)

    def notes(self) -> list[Note]:
        """What a reader must know."""
        whose = f"{', '.join(self.geometry.given)} as given, the rest this machine's" if self.geometry.given else ""
        threads = f"up to {self.geometry.sharing} threads" if self.geometry.sharing > 1 else "each thread"
        text = (
            f"{self.geometry}{f' ({whose})' if whose else ''}, lines of {self.geometry.line_bytes} bytes, the last"
            f" level for {threads}: least recently used, no prefetching, user code only"
        )
        notes = [Note(NoteKind.METHOD, text, "simulated caches")]
        if (why := self._simulator.why_frida) is not None:
            slower = f"compiled by frida, several times slower: {why}"
            notes.append(Note(NoteKind.OVERHEAD, slower, "simulated caches", why.remedy))
        if untraced := self._untraced:
            share = untraced / max(1, untraced + self._accesses)
            text = f"{untraced} accesses ({share:.2%}) not simulated: instructions do not name their addresses"
            notes.append(Note(NoteKind.INCOMPLETE, text))
        return notes

    def tools(self) -> list[Tool]:
        """The C compiler, where it made the simulator."""
        return [] if self._simulator.library is None else [c_compiler.tool(self._simulator.library)]

    def detail(self) -> CacheModelDetail:
        """For the manifest."""
        names = ("l1d", "l2", "llc")
        return CacheModelDetail(
            **{name: f"{level}/{level.line_bytes}" for name, level in zip(names, self.geometry.levels, strict=False)},
            given=list(self.geometry.given),
            sharing=self.geometry.sharing,
            simulator=self._simulator.compiler,
            accesses=self._accesses,
            untraced=self._untraced,
            log_entries=self._memory.model.log_used,
        )
