"""Perfetto's debug annotations (TrackEvent.debug_annotations): nested values of a slice."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

from hwprof.trace import packets
from hwprof.trace.interning import Interned, Table
from hwprof.trace.varint import varint

_INT64: Final = 1 << 63
_pack: Final = struct.Struct("<d").pack
NAME: Final = packets.tag(packets.ANNOTATION_NAME, packets.VARINT)
_BOOL: Final = packets.tag(packets.ANNOTATION_BOOL, packets.VARINT)
INT: Final = packets.tag(packets.ANNOTATION_INT, packets.VARINT)
DOUBLE: Final = packets.tag(packets.ANNOTATION_DOUBLE, packets.FIXED64)
STRING: Final = packets.tag(packets.ANNOTATION_STRING_IID, packets.VARINT)
ENTRY: Final = packets.tag(packets.ANNOTATION_DICT, packets.LENGTH)
_ITEM: Final = packets.tag(packets.ANNOTATION_ARRAY, packets.LENGTH)


class SharedAnnotations(dict[str, Any]):
    """A mapping that many slices carry and that never changes: it is encoded once a sequence."""


class Annotations:
    """Encodes annotations with the interned strings of one packet sequence."""

    def __init__(self, interned: Interned) -> None:
        self.interned = interned
        self._keys: dict[str, bytes] = {}  # by name: its field
        self._doubles: dict[bytes, dict[str, bytes]] = {}  # by tag and name: all that stands before a double's bytes
        self._shared: dict[
            int, tuple[SharedAnnotations, bytes]
        ] = {}  # by identity; the mapping is kept, so that it stays one

    def encode(self, annotations: Mapping[str, Any]) -> bytes:
        """TrackEvent.debug_annotations; entries that are ``None`` are left out.

        Raises ``TypeError`` where a value is not a number, boolean, string, sequence or mapping. Integers beyond
        64 bits with sign, which the trace processor would read wrong, are written in decimal.
        """
        return self._fields(packets.EVENT_ANNOTATION, annotations)

    def integer(self, name: str, value: int) -> bytes:
        """The same of one that is not negative."""
        encoded = (self._keys.get(name) or self._key(name)) + INT + varint(value)
        return packets.EVENT_ANNOTATION + varint(len(encoded)) + encoded

    def _fields(self, tag: bytes, entries: Mapping[str, Any]) -> bytes:
        parts: list[bytes] = []
        doubles = self._doubles.get(tag) or self._doubles.setdefault(tag, {})
        for name, value in entries.items():
            if type(value) is float:  # most are, and this is where a trace's time goes
                parts += doubles.get(name) or self._before_double(tag, name), _pack(value)
            elif value is not None:
                key = self._keys.get(name) or self._key(name)
                plain = type(value) is int and 0 <= value < _INT64
                encoded = INT + varint(value) if plain else self._value(value)
                parts += tag, varint(len(key) + len(encoded)), key, encoded
        return b"".join(parts)

    def _before_double(self, tag: bytes, name: str) -> bytes:
        key = self._keys.get(name) or self._key(name)
        return self._doubles[tag].setdefault(name, tag + varint(len(key) + len(DOUBLE) + 8) + key + DOUBLE)

    def _key(self, name: str) -> bytes:
        number = self.interned.number(Table.ANNOTATION_NAMES, str(name))
        return self._keys.setdefault(name, NAME + varint(number))

    def _value(self, value: Any) -> bytes:
        if isinstance(value, bool):
            return _BOOL + varint(value)
        if isinstance(value, int):
            return INT + varint(value) if -_INT64 <= value < _INT64 else self._value(str(value))
        if isinstance(value, float):
            return DOUBLE + _pack(value)
        if isinstance(value, str):
            return STRING + varint(self.interned.number(Table.STRINGS, value))
        if isinstance(value, SharedAnnotations):
            return self._once(value)
        if isinstance(value, Mapping):
            return self._fields(ENTRY, value)
        if isinstance(value, list | tuple):
            items = [self._value(item) for item in value if item is not None]
            return b"".join(_ITEM + varint(len(item)) + item for item in items)
        raise TypeError(f"cannot annotate a slice with {type(value).__name__}: {value!r}")

    def _once(self, value: SharedAnnotations) -> bytes:
        if id(value) not in self._shared:
            self._shared[id(value)] = value, self._fields(ENTRY, value)
        return self._shared[id(value)][1]
