"""What was executed between edges, block by block, as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from collectors.instrumented.memory import Blocks, Context, Entries, SharedMemory

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Log:
    """A copy of the log. Interval k lies between the edges k - 1 and k; interval 0 is everything before the first."""

    contexts: list[Context]
    blocks: list[Blocks]  # by context
    entries: Entries
    ends: Integers  # by edge: how many entries there are up to it
    times_ns: Integers  # by edge: when it was
    cpu_times_ns: Integers  # by edge: the process's CPU time, and that of code not counted (as ``memory`` has it)

    @classmethod
    def of(cls, memory: SharedMemory) -> Log:
        """As it stands now. Blocks that are being copied meanwhile by another thread are not in it."""
        ends = memory.log_ends()
        entries = memory.log()[: ends[-1] if len(ends) else 0]
        contexts = memory.contexts()
        return cls(
            contexts,
            [memory.blocks(context) for context in contexts],
            entries,
            ends,
            memory.edge_times(),
            memory.edge_cpu_times(),
        )

    @property
    def edges(self) -> int:
        """How many edges there are."""
        return len(self.ends)

    def intervals(self) -> Integers:
        """For each entry its interval."""
        return np.repeat(np.arange(self.edges), np.diff(self.ends, prepend=0))

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
