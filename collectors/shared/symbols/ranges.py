"""Ranges of addresses that do not overlap, and which of them an address lies in."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

Addresses = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]

NONE: Final = -1


@dataclass(frozen=True)
class Ranges:
    """Sorted and disjoint; ``owners`` are the numbers under which they were given."""

    starts: Addresses
    ends: Addresses  # exclusive
    owners: Numbers

    @classmethod
    def of(cls, starts: npt.ArrayLike, ends: npt.ArrayLike) -> Ranges:
        """Where given ranges overlap the one given last is right; what it leaves of others stays theirs. Empty ones
        hold nothing."""
        starts, ends = np.asarray(starts, dtype=np.uint64), np.asarray(ends, dtype=np.uint64)
        owners = np.flatnonzero(ends > starts)
        owners = owners[np.argsort(starts[owners], kind="stable")]
        starts, ends = starts[owners], ends[owners]
        if not (starts[1:] < ends[:-1]).any():
            return cls(starts, ends, owners)
        return cls._painted(starts, ends, owners)

    @classmethod
    def _painted(cls, starts: Addresses, ends: Addresses, owners: Numbers) -> Ranges:
        """From edge to edge, the latest of the ranges that are open there."""
        edges = np.unique(np.concatenate([starts, ends])).tolist()
        begins, stops, numbers = starts.tolist(), ends.tolist(), owners.tolist()
        opened: list[tuple[int, int]] = []  # (-owner, end)
        parts: list[tuple[int, int, int]] = []
        next_range = 0
        for edge, next_edge in pairwise(edges):
            while next_range < len(begins) and begins[next_range] == edge:
                heapq.heappush(opened, (-numbers[next_range], stops[next_range]))
                next_range += 1
            while opened and opened[0][1] <= edge:
                heapq.heappop(opened)
            if opened:
                parts.append((edge, next_edge, -opened[0][0]))
        columns = np.array(parts, dtype=np.uint64).reshape(-1, 3)
        return cls(columns[:, 0], columns[:, 1], columns[:, 2].astype(np.int64))

    def find(self, addresses: Addresses) -> Numbers:
        """For each address the place of its range in these arrays, or ``NONE``."""
        if not len(self.starts):
            return np.full(len(addresses), NONE, dtype=np.int64)
        place = np.searchsorted(self.starts, addresses, side="right") - 1
        inside = (place >= 0) & (addresses < self.ends[place])
        return np.where(inside, place, NONE)
