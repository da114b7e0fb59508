"""Protobuf by the column: the same message for many rows at once, compact varints included.

A message is a list of columns, each of which knows how many bytes every row takes. ``join`` lays the rows out in a
matrix as wide as the widest row could be and then drops the bytes that a row does not use, which keeps the work in a
few dozen numpy operations for a whole batch, whatever the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from hwprof.trace import varint

Present: TypeAlias = npt.NDArray[np.bool_] | None
"""Which rows have the field; ``None``: all."""


class Column(Protocol):
    """One field, or a run of fields, of every row."""

    width: int
    """Bytes of the longest row."""
    sizes: npt.NDArray[np.uint8] | int
    """Bytes of each row, or of every row alike; a row uses the first so many of its ``width`` bytes."""

    def fill(self, out: npt.NDArray[np.uint8]) -> None:
        """Writes the bytes into ``out`` (rows x width)."""
        ...


class Constant:
    """The same bytes in every row that has the field."""

    def __init__(self, data: bytes, present: Present = None) -> None:
        self.data = np.frombuffer(data, np.uint8)
        self.width = len(data)
        self.sizes = self.width if present is None else present.view(np.uint8) * np.uint8(self.width)

    def fill(self, out: npt.NDArray[np.uint8]) -> None:
        """As ``Column.fill``."""
        out[:] = self.data


class Varint:
    """A tag (or any constant bytes that end in one) and a number."""

    def __init__(self, tag: bytes, numbers: npt.NDArray[np.generic], present: Present = None) -> None:
        self.tag = np.frombuffer(tag, np.uint8)
        self.numbers = numbers.astype(np.uint64)
        self.number_sizes = varint.lengths(self.numbers)
        self.width = len(tag) + int(self.number_sizes.max(initial=1))
        sizes = self.number_sizes + np.uint8(len(tag))
        self.sizes: npt.NDArray[np.uint8] | int
        if present is not None:
            self.sizes = sizes * present.view(np.uint8)
        else:
            self.sizes = sizes if self.width > len(tag) + 1 else self.width

    def fill(self, out: npt.NDArray[np.uint8]) -> None:
        """As ``Column.fill``."""
        out[:, : len(self.tag)] = self.tag
        varint.fill(self.numbers, self.number_sizes, out[:, len(self.tag) :])


class Fixed64:
    """A tag and eight bytes: fixed64 of integers, double of floats."""

    def __init__(self, tag: bytes, numbers: npt.NDArray[np.generic], present: Present = None) -> None:
        self.tag = np.frombuffer(tag, np.uint8)
        self.bytes = np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("<")).view(np.uint8).reshape(-1, 8)
        self.width = len(tag) + 8
        self.sizes = self.width if present is None else present.view(np.uint8) * np.uint8(self.width)

    def fill(self, out: npt.NDArray[np.uint8]) -> None:
        """As ``Column.fill``."""
        out[:, : len(self.tag)] = self.tag
        out[:, len(self.tag) :] = self.bytes


def message(tag: bytes, inner: Sequence[Column], rows: int, present: Present = None) -> list[Column]:
    """An embedded message: its tag and length before its own columns, which must be absent wherever it is."""
    total: npt.NDArray[np.uint16] = np.zeros(rows, np.uint16)
    for column in inner:
        total += np.asarray(column.sizes, np.uint16)
    return [Varint(tag, total, present), *inner]


def join(columns: Sequence[Column], rows: int) -> npt.NDArray[np.uint8]:
    """The bytes of all rows, one row after the other."""
    width = sum(column.width for column in columns)
    out = np.empty((rows, width), np.uint8)
    used = np.ones((rows, width), np.bool_)
    start = 0
    for column in columns:
        column.fill(out[:, start : start + column.width])
        if not isinstance(column.sizes, int):
            shortest = int(column.sizes.min(initial=0))
            for byte in range(shortest, column.width):
                np.greater(column.sizes, byte, out=used[:, start + byte])
        start += column.width
    return out[used]
