"""Random instruction sequences, executed natively, in single steps and instrumented, from the same states.

    python -m scripts.benchmarks.fuzzing [--sequences 100000] [--seed 1] [--batch 2500]

A sequence is a function of random instructions (general, vector, mask and x87 registers, memory by every kind of
address, the red zone below the stack) with branches of every kind around them: on flags and on rcx, loops, calls and
jumps by every kind of operand. "Near": its code is within 2 GB of its copy; "far": it is not, so nothing that it
names relative to itself can be named so by the copy. Compared are all registers, the status flags, 4 KB of memory and
the words beside the code after it was executed natively and, twice, instrumented; and what was counted (instructions,
branches, jumps, calls, returns, loads, stores, their bytes, FLOPs) with what the instructions do that the processor
went through in single steps.

Left out: by the calling convention flags hold nothing after calls and returns, and Stalker loses the overflow flag
there and at indirect jumps; what lies below the stack's end across calls. One thread, code that stays as it is.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Final

import msgspec

from scripts.benchmarks.tables import Part, Table, write
from scripts.fuzzing.process import PASSES, Difference, Said

BATCH: Final = 2500
"""Sequences of a process."""

TIMEOUT_S: Final = 1800


@dataclass
class Found:
    """Of all processes of a place."""

    sequences: int = 0
    instructions: int = 0
    differences: list[tuple[int, Difference]] = field(default_factory=list)
    crashes: list[tuple[int, int, int]] = field(default_factory=list)  # seed, number, exit status

    def add(self, other: Found) -> None:
        """Those of another batch."""
        self.sequences += other.sequences
        self.instructions += other.instructions
        self.differences += other.differences
        self.crashes += other.crashes

    def differing(self) -> int:
        """How many sequences."""
        return len({(seed, difference.number) for seed, difference in self.differences})


def in_a_process(seed: int, count: int, place: str, first: int, progress: Path) -> Said | int:
    """What a process says, or the status with which it ended."""
    command = [sys.executable, "-m", "scripts.fuzzing.process", str(seed), str(count), place, str(progress), str(first)]
    done = subprocess.run(command, stdout=subprocess.PIPE, timeout=TIMEOUT_S, check=False)
    return msgspec.json.decode(done.stdout, type=Said) if done.returncode == 0 else done.returncode


def execute(turn: tuple[tuple[int, int], str]) -> tuple[str, Found]:
    """One batch, given as its seed and size and the place; behind a sequence that crashes a fresh process goes on."""
    (seed, count), place = turn
    first, found = 0, Found()
    with tempfile.TemporaryDirectory() as folder:
        progress = Path(folder, "progress")
        while first < count:
            said = in_a_process(seed, count, place, first, progress)
            if isinstance(said, int):
                number = int(progress.read_bytes()) if progress.exists() else first
                found.crashes.append((seed, number, said))
                first = number + 1
                continue
            found.sequences += said.sequences
            found.instructions += said.instructions
            found.differences += [(seed, difference) for difference in said.differences]
            break
    return place, found


def batches(sequences: int, seed: int, size: int) -> Iterator[tuple[int, int]]:
    """Seed and size of each."""
    for begin in range(0, sequences, size):
        yield seed + begin // size, min(size, sequences - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--sequences", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=BATCH, help="sequences of a process; places take turns")
    parser.add_argument("--output", type=Path, default=Path("results/fuzzing.md"))
    arguments = parser.parse_args()
    places = {"near": Found(), "far": Found()}
    turns = zip(batches(arguments.sequences, arguments.seed, arguments.batch), cycle(places), strict=False)
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # each waits for a process
        for place, found in pool.map(execute, turns):
            places[place].add(found)
    rows = [
        [
            place,
            f"{found.sequences:,}",
            f"{found.instructions:,}",
            f"{PASSES * found.sequences:,}",
            str(found.differing()),
            str(len(found.crashes)),
        ]
        for place, found in places.items()
    ]
    columns = ["code", "sequences", "instructions stepped through", "executions instrumented", "differing", "crashed"]
    wrong = [
        [place, str(seed), str(difference.number), difference.what]
        for place, found in places.items()
        for seed, difference in found.differences
    ]
    wrong += [
        [place, str(seed), str(number), f"ended by {status}"]
        for place, found in places.items()
        for seed, number, status in found.crashes
    ]
    further = (Part("What differed", ["code", "seed", "sequence", "what"], wrong),) if wrong else ()
    note = str(__doc__).partition("\n")[2] + f"\nThe load on the machine was {os.getloadavg()[0]:.1f}."
    write(Table("Random sequences", columns, rows, note, further), arguments.output)


if __name__ == "__main__":
    main()
