"""Annotations of many slices at once, by the column: values that have names, some of each slice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from hwprof.trace import packets, protobuf_columns
from hwprof.trace.annotations import DOUBLE, ENTRY, INT, NAME, STRING
from hwprof.trace.interning import Interned, Table
from hwprof.trace.packet_sequence import Ints
from hwprof.trace.protobuf_columns import Column, Fixed64, Varint
from hwprof.trace.varint import varint


@dataclass(frozen=True)
class Values:
    """One after the other, as slices have them."""

    owner: Ints
    """Which slice each is of; rising."""
    name: Ints
    """Which of ``names``."""
    names: Sequence[str]
    values: npt.NDArray[Any]
    """64-bit integers or doubles; where there are ``texts``, which of these."""
    texts: Sequence[str] | None = None


def encoded(tag: bytes, values: Values, interned: Interned, slices: int) -> list[bytes]:
    """Of each slice its fields with that tag; nothing where it has none."""
    if not len(values.owner):
        return [b""] * slices
    names = _numbers(interned, Table.ANNOTATION_NAMES, values.names, values.name)
    value: Column
    if values.texts is not None:
        value = Varint(STRING, _numbers(interned, Table.STRINGS, values.texts, values.values))
    elif values.values.dtype.kind == "f":
        value = Fixed64(DOUBLE, values.values)
    else:
        value = Varint(INT, values.values)
    rows = len(values.owner)
    columns = protobuf_columns.message(tag, [Varint(NAME, names), value], rows)
    sizes = sum((np.asarray(column.sizes, dtype=np.int64) for column in columns), np.zeros(rows, dtype=np.int64))
    return split(protobuf_columns.join(columns, rows).tobytes(), values.owner, sizes, slices)


def split(fields: bytes, owner: Ints, sizes: Ints, slices: int) -> list[bytes]:
    """The fields that follow one another, of so many bytes each, by their owner (rising)."""
    ends = np.cumsum(np.concatenate([[0], sizes]))[np.searchsorted(owner, np.arange(slices + 1))]
    return [fields[begin:end] for begin, end in pairwise(ends.tolist())]


def grouped(name: str, fields: Sequence[bytes], interned: Interned) -> list[bytes]:
    """Of each slice an annotation of that name, that has its fields as entries; nothing where there are none."""
    if not any(fields):
        return [b""] * len(fields)
    return _within(packets.EVENT_ANNOTATION, [name] * len(fields), fields, interned)


def nested(names: Sequence[str], fields: Sequence[bytes], interned: Interned) -> list[bytes]:
    """Entries that have entries: each of its name."""
    return _within(ENTRY, names, fields, interned)


def _within(tag: bytes, names: Sequence[str], fields: Sequence[bytes], interned: Interned) -> list[bytes]:
    keys = {name: NAME + varint(interned.number(Table.ANNOTATION_NAMES, name)) for name in dict.fromkeys(names)}
    return [
        tag + varint(len(keys[name]) + len(inner)) + keys[name] + inner if inner else b""
        for name, inner in zip(names, fields, strict=True)
    ]


def _numbers(interned: Interned, table: Table, texts: Sequence[str], used: Ints) -> npt.NDArray[np.uint32]:
    """Of each that is used its number in the sequence."""
    numbers = np.zeros(len(texts), np.uint32)
    places, first = np.unique(used, return_index=True)
    for place in places[np.argsort(first)].tolist():
        numbers[place] = interned.number(table, texts[place])
    found: npt.NDArray[np.uint32] = numbers[used]
    return found
