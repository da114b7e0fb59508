"""Finds what is alike among millions of rows of integers, by a signature of 128 bits: whoever counts it once has
counted all. Of ten million rows two that differ share one with a probability below 1e-24. Pure."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_SEEDS: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
_MIX: Final = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
"""Of splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014)."""


def signatures(columns: Sequence[npt.NDArray[Any]], begins: Integers) -> Words:
    """Shape (2, rows). A row is the entries from one of ``begins`` to the next, in whatever order, and an entry a
    number of each column."""
    found = np.empty((2, len(begins)), np.uint64)
    for place, seed in enumerate(_SEEDS):
        mixed = np.full(len(columns[0]), seed, np.uint64)
        for column in columns:
            mixed = _mixed(mixed + column.astype(np.uint64))
        found[place] = np.add.reduceat(mixed, begins) if len(begins) else 0
    return found


def _mixed(words: Words) -> Words:
    for shift, factor in _MIX:
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
    mixed: Words = words ^ (words >> np.uint64(31))
    return mixed


class Distinct:
    """Numbers what is different, from 0, as it comes; several threads may ask."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, int]] = {}  # by the one half of a signature: the other, and its number
        self._lock = allocate_lock()  # whatever the model has made of ``threading``
        self.total = 0

    def numbers(self, found: Words) -> tuple[Integers, Integers, int]:
        """Of each signature its number; which of them are the first ones of those that nobody had before, rising; and
        the first of these new numbers, which follow one another."""
        _, first, inverse = np.unique(found[0], return_index=True, return_inverse=True)
        if (found[1] != found[1][first][inverse]).any():  # it happens to nobody: then each is of its own
            first = inverse = np.arange(found.shape[1])
        numbers = np.empty(len(first), np.int64)
        new: list[int] = []
        order = np.argsort(first)
        with self._lock:
            begin = self.total
            for place, row, one, other in zip(order.tolist(), *_listed(first[order], found), strict=True):
                known = self._known.get(one)
                if known is not None and known[0] == other:
                    numbers[place] = known[1]
                    continue
                numbers[place] = begin + len(new)
                self._known.setdefault(one, (other, begin + len(new)))
                new.append(row)
            self.total += len(new)
        return numbers[inverse], np.array(new, dtype=np.int64), begin


def _listed(rows: Integers, found: Words) -> tuple[list[int], list[int], list[int]]:
    return rows.tolist(), found[0, rows].tolist(), found[1, rows].tolist()
