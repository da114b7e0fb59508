"""What was executed between edges, block by block, as arrays.

A log that grows beyond some megabytes goes on in a file: of many images it has gigabytes, and is read piece by piece.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from collectors.instrumented.memory import LOG_ENTRY, Blocks, Context, Entries, SharedMemory
from collectors.shared.nameless_file import NamelessFile

Integers = npt.NDArray[np.int64]

ENOUGH_ENTRIES: Final = 1_048_576
"""A log of so many is emptied: 16 MB. What is added between two looks has room beside them."""


class LogFile:
    """Where a log goes that is emptied while it grows: a file without a name. Where it has no room, what it took is
    free again at once."""

    def __init__(self, memory: SharedMemory, folder: Path | None = None, enough: int = ENOUGH_ENTRIES) -> None:
        """``folder``: that has room for it; None: that for temporary files. ``enough``: entries, to be emptied."""
        self._memory = memory
        self._folder = folder
        self._enough = enough
        self._file: NamelessFile | None = None
        self._map: mmap.mmap | None = None
        self.failure: OSError | None = None  # from then on nothing is written

    def empty_if_long(self) -> None:
        """Between two edges."""
        if self._memory.control.log_used >= self._enough and self.failure is None:
            self._empty()

    def entries(self) -> Entries:
        """All of them: those in the file as they lie there, none of which is in memory before it is asked for."""
        if self._file is not None and self.failure is None:
            self._empty()
        if self._file is None or self.failure is not None:
            return self._memory.log()
        self._memory.give_log_back()
        self._map = self._file.mapped()
        return np.frombuffer(self._map, LOG_ENTRY)

    def give_back(self) -> None:
        """What of ``entries`` was read is not needed for now: it lies in the file."""
        if self._map is not None:
            self._map.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        """What ``entries`` gave stays as it is."""
        if self._file is not None:
            self._file.close()

    def _empty(self) -> None:
        try:
            if self._file is None:
                self._file = NamelessFile(self._folder)
            self._file.append(self._memory.log_bytes())
        except OSError as error:
            self.failure = error
            self.close()
        else:
            self._memory.log_is_taken()


@dataclass(frozen=True)
class Log:
    """The log. Interval k lies between the edges k - 1 and k; interval 0 is everything before the first."""

    contexts: list[Context]
    blocks: list[Blocks]  # by context
    entries: Entries
    ends: Integers  # by edge: how many entries there are up to it
    times_ns: Integers  # by edge: when it was
    cpu_times_ns: Integers  # by edge: the process's CPU time, and that of code not counted (as ``memory`` has it)
    give_back: Callable[[], None] = lambda: None  # entries that were read are not needed for now

    @classmethod
    def of(cls, memory: SharedMemory, file: LogFile | None = None) -> Log:
        """As it stands now; ``file``: that it goes into. Blocks that are being copied meanwhile by another thread are
        not in it."""
        ends = memory.log_ends()
        file = file or LogFile(memory)
        entries = file.entries()[: ends[-1] if len(ends) else 0]
        contexts = memory.contexts()
        return cls(
            contexts,
            [memory.blocks(context) for context in contexts],
            entries,
            ends,
            memory.edge_times(),
            memory.edge_cpu_times(),
            file.give_back,
        )

    @property
    def edges(self) -> int:
        """How many edges there are."""
        return len(self.ends)

    def facts_within(self, interval: int, context: int, start: int, end: int) -> list[int]:
        """The facts of one thread in one interval, of the blocks that begin within [start, end)."""
        begin = int(self.ends[interval - 1]) if interval else 0
        entries = self.entries[begin : self.ends[interval]]
        entries = entries[entries["context"] == context]
        blocks = self.blocks[context][entries["block"]]
        inside = (blocks["start"] >= start) & (blocks["start"] < end)
        executions = entries["executions"][inside].astype(np.int64)
        facts: Integers = executions @ blocks["facts"][inside].astype(np.int64)
        return [int(value) for value in facts]
