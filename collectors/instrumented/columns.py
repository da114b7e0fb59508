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

PLACE_BYTES: Final = np.uint32().itemsize


@dataclass(frozen=True)
class Part:
    """``values`` of all of some rows that follow one another, or of those at ``places`` among them, in rising order;
    the others are 0."""

    rows: int
    values: Narrow
    places: npt.NDArray[np.uint32] | None = None

    def add_to(self, amounts: Integers, begin: int) -> None:
        """The amounts of the rows from ``begin`` on are added, of as many as there are both here and there."""
        until = min(self.rows, begin + len(amounts))
        if self.places is None:
            amounts[: until - begin] += self.values[begin:until].astype(np.int64)
            return
        first, last = np.searchsorted(self.places, (begin, until))
        amounts[self.places[first:last].astype(np.int64) - begin] += self.values[first:last].astype(np.int64)


class Column:
    """The rows of all parts, one part after the other."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        self._begins = list(accumulate((part.rows for part in parts), initial=0))

    @property
    def rows(self) -> int:
        """How many."""
        return self._begins[-1]

    def within(self, rows: slice) -> Integers:
        """The amounts of these rows (``start`` and ``stop``)."""
        amounts = np.zeros(rows.stop - rows.start, dtype=np.int64)
        first = int(np.searchsorted(self._begins, rows.start, side="right")) - 1
        for part, begin in zip(self.parts[first:], self._begins[first:], strict=False):
            if begin >= rows.stop:
                break
            inside = max(rows.start - begin, 0)
            part.add_to(amounts[begin + inside - rows.start :], inside)
        return amounts


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
