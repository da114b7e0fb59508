"""Reads callgrind's output: what every function did itself, dump by dump.

The format ("Callgrind Format Specification", version 1, of valgrind's manual): a file holds parts, one a dump. Lines
``fn=``, ``ob=`` say whose the cost lines are that follow; names are written out once and then called by a number. The
cost line after a ``calls=`` line is what the called function took, and is in that function's own lines already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from hwprof.errors import HwprofError

COST_LINE: Final = frozenset("0123456789+-*")
NO_FILE: Final = "???"
"""What callgrind calls the file of code that lies in none."""

_RECURSION: Final = re.compile(r"'\d+$")
_COMPRESSED: Final = re.compile(r"\((\d+)\)(?: (.*))?$")


class ProfileError(HwprofError):
    """The file is not what callgrind writes."""


class Function(NamedTuple):
    """A function; all depths of its recursion are one."""

    name: str  # "0x..." where no symbol is known
    file: str  # the path of its library or program, or NO_FILE


@dataclass
class Part:
    """One dump: what was collected since the one before. Amounts are in the order of ``events``."""

    number: int  # from 1 on
    events: tuple[str, ...]
    total: list[int]
    costs: dict[Function, list[int]] = field(default_factory=dict)


def read(path: Path) -> Iterator[Part]:
    """The parts of a file in order; one that was cut short is left out.

    Raises ``ProfileError`` where a line is not understood, or a part's functions do not add up to its total.
    """
    with path.open(encoding="utf-8", errors="replace") as lines:
        yield from parts(lines)


def parts(lines: Iterable[str]) -> Iterator[Part]:
    """The parts in these lines; see ``read``."""
    reader = _Reader()
    for number, line in enumerate(lines, 1):
        try:
            part = reader.take(line.rstrip("\n"))
        except (ValueError, LookupError) as error:
            raise ProfileError(f"line {number} of callgrind's output is not understood: {line.strip()[:80]}") from error
        if part is not None:
            yield part


class _Reader:
    """Goes through the lines, and knows the names that stood in those before."""

    def __init__(self) -> None:
        self._objects: dict[str, str] = {}
        self._functions: dict[str, str] = {}
        self._positions = 1
        self._events: tuple[str, ...] = ()
        self._part: Part | None = None
        self._number = 0
        self._object = NO_FILE
        self._costs: list[int] = []
        self._called = False  # the next cost line is a call's

    def take(self, line: str) -> Part | None:
        """One line; the part that ends with it."""
        if line[:1] in COST_LINE and line:
            self._cost(line)
        elif "=" in line[: len("calls=")]:
            key, _, value = line.partition("=")
            self._specify(key, value)
        elif line and not line.startswith("#"):
            key, colon, value = line.partition(":")
            if not colon:
                raise ValueError(line)
            return self._head(key, value)
        return None

    def _cost(self, line: str) -> None:
        if self._called:
            self._called = False
            return
        costs = self._costs
        for place, amount in enumerate(line.split()[self._positions :]):  # zeros at the end are left out
            costs[place] += int(amount)

    def _specify(self, key: str, value: str) -> None:
        if key == "fn":
            name = _name(value, self._functions)
            if self._part is None:
                raise ValueError("a function before the events")
            function = Function(_RECURSION.sub("", name), self._object)
            self._costs = self._part.costs.setdefault(function, [0] * len(self._events))
        elif key == "ob":
            self._object = _name(value, self._objects)
        elif key == "cfn":
            _name(value, self._functions)
        elif key == "cob":
            _name(value, self._objects)
        elif key == "calls":
            self._called = True
        elif key not in ("fl", "fi", "fe", "cfi", "cfl"):
            raise ValueError(key)

    def _head(self, key: str, value: str) -> Part | None:
        if key == "part":
            self._number = int(value)
        elif key == "positions":
            self._positions = len(value.split())
        elif key == "events":
            self._events = tuple(value.split())
            self._object = NO_FILE
            self._part = Part(self._number or 1, self._events, [0] * len(self._events))
        elif key == "totals":
            return self._end(value)
        return None

    def _end(self, value: str) -> Part:
        """The part is whole; its total is what its functions add up to."""
        part, self._part = self._part, None
        if part is None:
            raise ValueError("totals")
        for place, amount in enumerate(value.split()):
            part.total[place] = int(amount)
        sums = [sum(column) for column in zip(*part.costs.values(), strict=True)] or [0] * len(part.events)
        if sums != part.total:
            raise ProfileError(
                f"part {part.number} of callgrind's output adds up to {sums}, not to its total {part.total}"
            )
        return part


def _name(value: str, known: dict[str, str]) -> str:
    """A name that stands there, or that its number stands for. Raises ``LookupError`` for a number not seen before."""
    compressed = _COMPRESSED.match(value)
    if compressed is None:
        return value
    number, name = compressed.groups()
    if name is not None:
        known[number] = name
    return known[number]
