"""A fact's amounts in millions of rows: of the smallest type that holds them, and only those that are none of 0 where
these are few, as of most facts they are. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Narrow = npt.NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True)
class Column:
    """``values`` of all its rows, or of those at ``places``, in rising order; the others are 0."""

    rows: int
    values: Narrow
    places: npt.NDArray[np.uint32] | None = None

    def within(self, rows: slice) -> Integers:
        """The amounts of these rows (``start`` and ``stop``)."""
        if self.places is None:
            return self.values[rows].astype(np.int64)
        amounts = np.zeros(rows.stop - rows.start, dtype=np.int64)
        begin, end = np.searchsorted(self.places, (rows.start, rows.stop))
        amounts[self.places[begin:end].astype(np.int64) - rows.start] = self.values[begin:end]
        return amounts


def narrowed(values: Integers) -> Narrow:
    """In the smallest type that holds all of them."""
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


def joined(parts: Sequence[Narrow]) -> Column:
    """The parts' rows, one part after the other."""
    rows = sum(map(len, parts))
    width = max((part.itemsize for part in parts), default=1)
    some = sum(int(np.count_nonzero(part)) for part in parts)
    if (np.uint32().itemsize + width) * some >= width * rows or rows > np.iinfo(np.uint32).max:
        return Column(rows, np.concatenate(parts))
    places, values, begin = list[npt.NDArray[np.uint32]](), list[Narrow](), 0
    for part in parts:
        there = np.flatnonzero(part)
        places.append((there + begin).astype(np.uint32))
        values.append(part[there])
        begin += len(part)
    return Column(rows, np.concatenate(values), np.concatenate(places))
