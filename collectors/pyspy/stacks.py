"""py-spy's own file (``--format chrometrace``): when each frame was first and last met on a thread's stack.

An event is there where a stack differs from the one before, stamped with microseconds since py-spy began. A frame is a
function with the line that it had reached, so that a function that goes on has several, one after the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from hwprof.errors import HwprofError
from hwprof.printable import is_text
from hwprof.run.regular_files import read_regular

THREAD: Final = re.compile(r"thread \((\d+)\)")
"""The outermost frame of each stack (``--threads``): the kernel's number of the thread, and its name."""

LEVELS: Final = 1000
"""Of a stack, that are kept: as many as Python itself allows by default. Whoever makes figures or a trace of stacks
keeps the whole of each, so that endless recursion would take memory by the square of its depth."""

LARGEST_BYTES: Final = 512 << 20
"""Of its file."""

LARGEST: Final = 2**31 - 1
"""Of lines and threads, as the tables keep them."""

LATEST_US: Final = 366 * 24 * 3600 * 1_000_000
"""No pass takes a year; what is within can be converted to any clock in 64 bits."""

DIGITS: Final = 20
"""Of a number of 64 bits; Python refuses to read those of thousands."""


class _Place(msgspec.Struct, gc=False):
    filename: Any = ""
    line: Any = 0


class _Event(msgspec.Struct, gc=False):
    """The fields of an event that are read here; each may be anything."""

    name: Any = None
    ph: Any = None
    ts: Any = None
    tid: Any = None
    args: Any = None


@dataclass(frozen=True)
class Frame:
    """A function on a thread's stack, from when to when, on py-spy's clock. ``depth``: 0 is the outermost."""

    tid: int
    depth: int
    function: str
    file: str
    line: int
    begin_ns: int
    end_ns: int


@dataclass
class Stacks:
    """What is in py-spy's file: frames in the order of their ends, and what it was told of that is none."""

    frames: list[Frame] = field(default_factory=list)
    threads: list[Frame] = field(default_factory=list)  # from when to when each was met, of depth -1
    refused: int = 0  # frames whose name, thread or times are none, and events of no known form
    lines_unknown: int = 0  # frames that are kept, whose line is none
    too_deep: int = 0  # frames below ``LEVELS`` others


def read(file: Path) -> Stacks:
    """All frames. What is wrong with one costs this one. Raises ``HwprofError`` for a file that is not whole."""
    try:
        events = _events(read_regular(file, LARGEST_BYTES))
    except (ValueError, RecursionError, OSError) as error:
        raise HwprofError(f"py-spy's file cannot be read: {error}") from error
    return _stacks(events)


def _events(text: bytes) -> list[Any]:
    """Things of any form, but for a list around them. Python's own reader takes what is no JSON by the letter: numbers
    that are none, halves of characters."""
    try:
        return msgspec.json.decode(text, type=list[_Event])
    except (msgspec.MsgspecError, RecursionError):
        known = json.loads(text, parse_int=_number)
    if not isinstance(known, list):
        raise ValueError("it is no list of events")
    return [_event(one) for one in known]


def _number(digits: str) -> int | None:
    return int(digits) if len(digits) <= DIGITS else None


def _event(known: Any) -> _Event | None:
    if not isinstance(known, dict):
        return None
    return _Event(*(known.get(name) for name in _Event.__struct_fields__))


def _stacks(events: Iterable[_Event | None]) -> Stacks:
    found = Stacks()
    opened: dict[int | None, list[_Event]] = {}
    for event in events:
        if event is None or event.ph not in ("B", "E"):
            found.refused += event is None or not isinstance(event.ph, str)
            continue
        stack = opened.setdefault(event.tid if isinstance(event.tid, int) else None, [])
        if event.ph == "B":
            stack.append(event)
        elif stack:
            _close(found, stack, event.ts)
    return found


def _close(found: Stacks, stack: list[_Event], end_us: Any) -> None:
    """The innermost of the open frames ends."""
    begun = stack.pop()
    outermost = stack[0].name if stack else begun.name
    thread = THREAD.match(outermost) if isinstance(outermost, str) else None
    if thread is None and isinstance(outermost, str):
        return  # nobody knows whose it is
    depth = len(stack) - 1
    if depth >= LEVELS:
        found.too_deep += 1
        return
    tid = _number(thread[1]) if thread is not None else None
    place = _place(begun.args)
    times_us = begun.ts, end_us
    if not (
        _is_in(tid, LARGEST)
        and all(_is_name(one) for one in (begun.name, place.filename))
        and all(_is_in(one, LATEST_US) for one in times_us)
        and begun.ts <= end_us
    ):
        found.refused += 1
        return
    assert tid is not None
    line = place.line if _is_in(place.line, LARGEST) else 0
    frame = Frame(tid, depth, begun.name, place.filename, line, 1000 * begun.ts, 1000 * end_us)
    if depth < 0:
        found.threads.append(frame)
        return
    found.lines_unknown += not _is_in(place.line, LARGEST)
    found.frames.append(frame)


def _place(known: Any) -> _Place:
    """Without one the file has no name, and the line is not known."""
    if not isinstance(known, dict):
        return _Place(line=None)
    return _Place(known.get("filename", ""), known.get("line", 0))


def _is_in(known: Any, largest: int) -> bool:
    return type(known) is int and 0 <= known <= largest


def _is_name(known: Any) -> bool:
    return isinstance(known, str) and is_text(known)
