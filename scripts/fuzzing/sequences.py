"""Makes random sequences: one source of many."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass

from scripts.fuzzing.branches import BRANCHES, SIMPLE
from scripts.fuzzing.writing import POOL_BYTES, Facts, Writing, groups


@dataclass(frozen=True)
class Batch:
    """Sequences in one source. ``facts``: by sequence and instruction."""

    source: str
    facts: list[list[Facts]]
    texts: list[str]


def batch(seed: int, count: int, flags: Collection[str]) -> Batch:
    """Sequences of a seed: the same ones every time. In the source, subsection 0 is their code, 1 their pools, 2 the
    offsets of their instructions, 3 pairs of offsets, of a pool's word and of the code whose address it holds."""
    made = []
    for number in range(count):
        sequence = Writing(number, random.Random(f"{seed} {number}"), groups(flags), BRANCHES, SIMPLE)
        sequence.write()
        made.append(sequence)
    lines = [".intel_syntax noprefix", ".text 0", "base:"]
    lines += [line for sequence in made for line in sequence.lines]
    lines += [".text 1", ".balign 4096", "pools:"]
    for sequence in made:
        lines += [f"P{sequence.number}:", f".skip {POOL_BYTES}"]
    lines += [".balign 4096", ".text 2", "offsets:"]
    lines += [f".long I{made_.number}_{i}-base" for made_ in made for i in range(len(made_.facts))]
    lines += [".balign 8", ".text 3", "pointers:"]
    for sequence in made:
        lines += [f".quad P{sequence.number}+{8 * slot}-base, {label}-base" for slot, label in sequence.pointers]
    lines += [".text 4", ".quad pools-base, offsets-base, pointers-base"]
    return Batch("\n".join([*lines, ""]), [sequence.facts for sequence in made], ["\n".join(m.lines) for m in made])
