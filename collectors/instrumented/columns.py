"""A fact's amounts in millions of rows: of the smallest type that holds them, and only those that are none of 0 where
these are few, as of most facts they are. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Narrow = npt.NDArray[np.unsignedinteger[Any]]

FEW: Final = 1 << 18
"""Rows: of one type they take a megabyte."""

PLACE_BYTES: Final = np.uint32().itemsize


@dataclass(frozen=True)
class Part:
    """``values`` of all of some rows that follow one another, or of those at ``places`` among them, in rising order;
    the others are 0."""

    rows: int
    values: Narrow
    places: npt.NDArray[np.uint32] | None = None

    def at(self, rows: Integers) -> Integers:
        """The amounts of these rows, which rise."""
        if self.places is None:
            return self.values[rows].astype(np.int64)
        amounts = np.zeros(len(rows), dtype=np.int64)
        if len(self.places) and len(rows):
            found = np.minimum(np.searchsorted(self.places, rows), len(self.places) - 1)
            there = self.places[found] == rows
            amounts[there] = self.values[found[there]]
        return amounts


class Column:
    """The rows of all parts, one part after the other."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        self._begins = list(accumulate((part.rows for part in parts), initial=0))

    @property
    def rows(self) -> int:
        """How many."""
        return self._begins[-1]

    def at(self, rows: Integers) -> Integers:
        """The amounts of these rows, which rise."""
        cuts = np.searchsorted(rows, self._begins)
        amounts = np.zeros(len(rows), dtype=np.int64)
        for part, begin, low, high in zip(self.parts, self._begins, cuts.tolist(), cuts[1:].tolist(), strict=False):
            if low < high:
                amounts[low:high] = part.at(rows[low:high] - begin)
        return amounts


def merged_column(parts: Sequence[Part]) -> Column:
    """Of parts that have few rows together, one has all."""
    column = Column(parts)
    return column if column.rows > FEW else Column([packed(column.at(np.arange(column.rows)))])


def narrowed(values: Integers) -> Narrow:
    """In the smallest type that holds all of them."""
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


def packed(values: Integers) -> Part:
    """These rows, in few bytes."""
    narrow = narrowed(values)
    some = int(np.count_nonzero(narrow))
    if (PLACE_BYTES + narrow.itemsize) * some >= narrow.nbytes:
        return Part(len(narrow), narrow)
    places = np.flatnonzero(narrow)
    return Part(len(narrow), narrow[places], places.astype(np.uint32))
