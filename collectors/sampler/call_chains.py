"""Call chains: each distinct one kept once, then as a tree of callers."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import repeat
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwprof.hardware.perf_sampling import CONTEXT_MAX, CPUMODES

Words = NDArray[np.uint64]
Numbers = NDArray[np.int64]
Small = NDArray[np.int32]

NO_CALLERS: Final = -1

_MIX: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_SHIFT: Final = np.uint64(29)
_IN_USER_CODE: Final = next(mode for mode, name in CPUMODES.items() if name == "user")


@dataclass
class Stacks:
    """A tree of calls, callers before those that they call. ``parent`` is -1 at the outermost ones; ``of_chain`` is
    each chain's node."""

    parent: list[int] = field(default_factory=list)
    address: list[int] = field(default_factory=list)
    of_chain: list[int] = field(default_factory=list)


class Chains:
    """The callers of samples. A chain is identified by 64 bits that all its addresses go into: of a million chains, two
    are taken for one with a probability of 1 in 10⁷."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._chains: list[tuple[int, ...]] = []  # innermost caller first

    def intern(self, words: Words, at: Numbers, length: Numbers, mode: Numbers) -> Small:
        """The number of each sample's chain; its addresses begin at word ``at``, innermost first. Of a sample in user
        code the first one is the sample's own, which is no caller."""
        if not len(at):
            return np.empty(0, dtype=np.int32)
        at, length = _without_marks(words, at, length)
        own = ((mode == _IN_USER_CODE) & (length > 0)).astype(np.int64)
        at, length = at + own, length - own
        result = np.full(len(at), NO_CALLERS, dtype=np.int32)
        has = np.flatnonzero(length > 0)
        if len(has):
            result[has] = self._numbered(words, at[has], length[has])
        return result

    def stacks(self) -> Stacks:
        """The tree of all chains."""
        stacks = Stacks()
        nodes: dict[tuple[int, int], int] = {}
        for chain in self._chains:
            node = -1
            for address in reversed(chain):
                key = (node, address)
                node = nodes.setdefault(key, len(nodes))
                if node == len(stacks.parent):
                    stacks.parent.append(key[0])
                    stacks.address.append(address)
            stacks.of_chain.append(node)
        return stacks

    def _numbered(self, words: Words, at: Numbers, length: Numbers) -> Small:
        """The numbers of chains that have at least one address each."""
        hashes = _hashes(words, at, length)
        numbers = self._looked_up(hashes)
        new = np.flatnonzero(numbers == NO_CALLERS)
        if len(new):
            _, first = np.unique(hashes[new], return_index=True)
            for place in new[first].tolist():
                self._numbers[int(hashes[place])] = len(self._chains)
                self._chains.append(tuple(words[at[place] : at[place] + length[place]].tolist()))
            numbers[new] = self._looked_up(hashes[new])
        return numbers

    def _looked_up(self, hashes: Words) -> Small:
        """Those that are known."""
        found = map(self._numbers.get, hashes.tolist(), repeat(NO_CALLERS))
        return np.fromiter(found, dtype=np.int32, count=len(hashes))


def _without_marks(words: Words, at: Numbers, length: Numbers) -> tuple[Numbers, Numbers]:
    """The user part of each chain, without the mark in front of it: as the kernel's part is never recorded, the mark
    is the first word, and nothing else stands before it."""
    marked = length > 0
    marked[marked] = words[at[marked]] >= np.uint64(CONTEXT_MAX)
    return at + marked, length - marked


def _hashes(words: Words, at: Numbers, length: Numbers) -> Words:
    """A number for each chain, which has at least one address: of all chains the first addresses, then the second ones
    of those that are longer, and so on."""
    order = np.argsort((length.max() - length).astype(np.uint16), kind="stable")  # of 16 bits: sorted by their digits
    begins, lengths = at[order], length[order]
    reaching = len(order) - np.searchsorted(lengths[::-1], np.arange(lengths[0]), side="right")
    mixed = lengths.astype(np.uint64)
    for position, count in enumerate(reaching.tolist()):
        part = mixed[:count]
        part ^= words.take(begins[:count] + position)
        part *= _MIX
        part ^= part >> _SHIFT
    hashes = np.empty_like(mixed)
    hashes[order] = mixed
    return hashes
