"""Debug annotations of any shape: what a slice says about itself when it is selected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hwprof.trace import packets
from hwprof.trace.interning import Interned, Table
from hwprof.trace.varint import varint

_INT64: Final = 1 << 63


class Annotations:
    """Encodes annotations with the interned strings of one packet sequence."""

    def __init__(self, interned: Interned) -> None:
        self._interned = interned

    def encode(self, annotations: Mapping[str, Any]) -> bytes:
        """TrackEvent.debug_annotations; entries that are ``None`` are left out.

        Raises ``TypeError`` where a value is not a number, boolean, string, sequence or mapping. Integers beyond
        64 bits with sign, which the trace processor would read wrong, are written in decimal.
        """
        return b"".join(
            packets.EVENT_ANNOTATION + varint(len(body)) + body
            for body in (self._named(name, value) for name, value in annotations.items() if value is not None)
        )

    def _named(self, name: str, value: Any) -> bytes:
        number = self._interned.number(Table.ANNOTATION_NAMES, name)
        return packets.number(packets.ANNOTATION_NAME, number) + self._value(value)

    def _value(self, value: Any) -> bytes:
        if isinstance(value, bool):
            return packets.number(packets.ANNOTATION_BOOL, value)
        if isinstance(value, int):
            if -_INT64 <= value < _INT64:
                return packets.number(packets.ANNOTATION_INT, value)
            return self._value(str(value))
        if isinstance(value, float):
            return packets.double(packets.ANNOTATION_DOUBLE, value)
        if isinstance(value, str):
            return packets.number(packets.ANNOTATION_STRING_IID, self._interned.number(Table.STRINGS, value))
        if isinstance(value, Mapping):
            entries = (self._named(str(key), entry) for key, entry in value.items() if entry is not None)
            return b"".join(packets.data(packets.ANNOTATION_DICT, entry) for entry in entries)
        if isinstance(value, list | tuple):
            entries = (self._value(entry) for entry in value if entry is not None)
            return b"".join(packets.data(packets.ANNOTATION_ARRAY, entry) for entry in entries)
        raise TypeError(f"cannot annotate a slice with {type(value).__name__}: {value!r}")
