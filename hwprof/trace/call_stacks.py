"""Call stacks as interned data: each function, file, frame and stack is written once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import polars as pl

from hwprof.errors import DamagedError
from hwprof.trace import packets
from hwprof.trace.frames import UNKNOWN, Code, File, Key, Place
from hwprof.trace.interning import Interned, Table

Callers: TypeAlias = Mapping[int, tuple[int | None, Key]]
"""Of each stack its parent, and the code that calls."""


def callers_of(stacks: pl.DataFrame) -> Callers:
    """From rows of the table ``stacks`` with a column ``kernel`` (null where there is none). Raises ``DamagedError``
    where a stack does not come after its caller: they may go round in a circle."""
    if (stacks["parent"] >= stacks["stack"]).any():
        raise DamagedError("the table stacks is damaged: a stack stands before its caller", "hwprof collect again")
    return {
        stack: (parent, Key(kernel, 0 if kernel is not None else address, False))
        for stack, parent, address, kernel in stacks.select("stack", "parent", "address", "kernel").iter_rows()
    }


def numbers_of(keys: pl.DataFrame, number: Callable[..., int]) -> pl.Series:
    """What ``number`` says of each row's values; each combination is asked for once."""
    distinct = keys.unique(maintain_order=True)
    numbers = pl.Series([number(*row) for row in distinct.iter_rows()], dtype=pl.Int64)
    known = distinct.with_columns(number=numbers)
    return keys.join(known, on=keys.columns, how="left", nulls_equal=True, maintain_order="left")["number"]


class CallStacks:
    """Numbers the call stacks of one pass in one packet sequence."""

    def __init__(self, interned: Interned, code: Code, callers: Callers) -> None:
        """``callers`` as ``callers_of`` makes them."""
        self._interned, self._code, self._callers = interned, code, callers

    def number(self, stack: int | None, leaf: Key, roots: Sequence[Place] = ()) -> int:
        """The number of the call stack that ends in ``leaf``, called from ``stack``, and stands on ``roots``, the
        outermost first."""
        key = (tuple(roots), stack, leaf)
        return self._interned.entry(Table.CALL_STACKS, key, lambda: self._frames(stack, leaf, roots))

    def _frames(self, stack: int | None, leaf: Key, roots: Sequence[Place]) -> bytes:
        callers = []
        while stack is not None and stack in self._callers:
            stack, caller = self._callers[stack]
            callers.append(caller)
        while callers and self._code.place(callers[-1]).file.path == UNKNOWN:
            callers.pop()  # code without frame pointers has wrong callers: no flame graph is to stand on those
        frames = [self._root(root) for root in roots] + [self._frame(key) for key in (*reversed(callers), leaf)]
        return b"".join(packets.number(2, frame) for frame in frames)  # the outermost first

    def _root(self, place: Place) -> int:
        return self._interned.entry(Table.FRAMES, place, lambda: self._described(place))

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
