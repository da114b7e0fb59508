"""Interning: a string, frame or call stack is written once a sequence, and by its number from then on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from hwprof.trace import packets


class Table(IntEnum):
    """The fields of InternedData that hwprof uses; each numbers its entries from 1."""

    CATEGORIES = 1
    NAMES = 2
    ANNOTATION_NAMES = 3
    FUNCTION_NAMES = 5
    FRAMES = 6
    CALL_STACKS = 7
    MAPPING_PATHS = 17
    MAPPINGS = 19
    STRINGS = 29


class Interned:
    """The strings, and what else repeats, of one packet sequence."""

    def __init__(self) -> None:
        self._numbers: dict[Table, dict[Hashable, int]] = {table: {} for table in Table}
        self._new: list[bytes] = []

    def number(self, table: Table, value: str) -> int:
        """The number of a string, from 1; one never seen before is written by the next ``take``."""
        known = self._numbers[table].get(value)
        return known if known is not None else self.entry(table, value, lambda: packets.text(2, value))

    def entry(self, table: Table, key: Hashable, fields: Callable[[], bytes]) -> int:
        """The number of what has that key; ``fields`` says what it is the first time, and may intern what it needs."""
        numbers = self._numbers[table]
        known = numbers.get(key)
        if known is None:
            body = fields()
            known = numbers[key] = len(numbers) + 1
            self._new.append(packets.data(table, packets.number(1, known) + body))
        return known

    def numbers(self, table: Table, values: Iterable[str | None]) -> npt.NDArray[np.uint32]:
        """The numbers of many strings; 0 for ``None``."""
        return np.array([0 if value is None else self.number(table, value) for value in values], np.uint32)

    def take(self) -> bytes:
        """TracePacket.interned_data with what is new since the last call; nothing if nothing is."""
        if not self._new:
            return b""
        entries = b"".join(self._new)
        self._new.clear()
        return packets.data(packets.INTERNED_DATA, entries)
