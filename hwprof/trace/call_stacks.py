"""Call stacks as interned data: each function, file, frame and stack is written once."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from hwprof.trace import packets
from hwprof.trace.frames import UNKNOWN, Code, File, Key, Place
from hwprof.trace.interning import Interned, Table


class CallStacks:
    """Numbers the call stacks of one pass in one packet sequence."""

    def __init__(self, interned: Interned, code: Code, stacks: pl.DataFrame) -> None:
        """``stacks`` are rows of that table with a column ``kernel`` (null where there is none)."""
        self._interned, self._code = interned, code
        self._callers = {
            stack: (parent, Key(kernel, 0 if kernel is not None else address, False))
            for stack, parent, address, kernel in stacks.select("stack", "parent", "address", "kernel").iter_rows()
        }

    def number(self, stack: int | None, leaf: Key, roots: Sequence[tuple[str, str]] = ()) -> int:
        """The number of the call stack that ends in ``leaf``, called from ``stack``, and stands on ``roots``: kind and
        name of each, the outermost first."""
        key = (tuple(roots), stack, leaf)
        return self._interned.entry(Table.CALL_STACKS, key, lambda: self._frames(stack, leaf, roots))

    def _frames(self, stack: int | None, leaf: Key, roots: Sequence[tuple[str, str]]) -> bytes:
        callers = []
        while stack in self._callers:
            stack, caller = self._callers[stack]
            callers.append(caller)
        while callers and self._code.place(callers[-1]).file.path == UNKNOWN:
            callers.pop()  # code without frame pointers has wrong callers: no flame graph is to stand on those
        frames = [self._root(*root) for root in roots] + [self._frame(key) for key in (*reversed(callers), leaf)]
        return b"".join(packets.number(2, frame) for frame in frames)  # the outermost first

    def _root(self, kind: str, name: str) -> int:
        place = Place(name, File(f"[{kind}]"), 0)
        return self._interned.entry(Table.FRAMES, (kind, name), lambda: self._described(place))

    def _frame(self, key: Key) -> int:
        return self._interned.entry(Table.FRAMES, key, lambda: self._described(self._code.place(key)))

    def _described(self, place: Place) -> bytes:
        name = self._interned.number(Table.FUNCTION_NAMES, place.name)
        # a frame without a mapping leaves its stack out of the trace
        return (
            packets.number(2, name) + packets.number(3, self._mapping(place.file)) + packets.number(4, place.relative)
        )

    def _mapping(self, file: File) -> int:
        def described() -> bytes:
            path = self._interned.number(Table.MAPPING_PATHS, file.path)
            extent = packets.number(4, file.start) + packets.number(5, file.end)
            return packets.number(8, file.offset) + packets.number(3, file.offset) + extent + packets.number(7, path)

        return self._interned.entry(Table.MAPPINGS, file, described)
