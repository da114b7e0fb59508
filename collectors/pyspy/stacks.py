"""py-spy's own file (``--format chrometrace``): when each frame was first and last met on a thread's stack.

An event is there where a stack differs from the one before, stamped with microseconds since py-spy began. A frame is a
function with the line that it had reached, so that a function that goes on has several, one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from hwprof.errors import HwprofError

THREAD: Final = re.compile(r"thread \((\d+)\)")
"""The outermost frame of each stack (``--threads``): the kernel's number of the thread, and its name."""


class _Place(msgspec.Struct, gc=False):
    filename: str = ""
    line: int = 0


class _Event(msgspec.Struct, gc=False):
    """The fields of an event that are read here."""

    name: str
    ph: str
    ts: int
    tid: int
    args: _Place


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


def read(file: Path) -> list[Frame]:
    """All frames, in the order of their ends. Raises ``HwprofError`` for a file that is not whole."""
    try:
        events = msgspec.json.decode(file.read_bytes(), type=list[_Event])
    except (msgspec.MsgspecError, OSError) as error:
        raise HwprofError(f"py-spy's file cannot be read: {error}") from error
    return list(_frames(events))


def _frames(events: Sequence[_Event]) -> Iterator[Frame]:
    open_frames: dict[int, list[_Event]] = {}
    for event in events:
        stack = open_frames.setdefault(event.tid, [])
        if event.ph == "B":
            stack.append(event)
        elif event.ph == "E" and stack:
            begun = stack.pop()
            thread = THREAD.match(stack[0].name) if stack else None
            if thread is not None:  # else it is the thread's own
                yield _frame(int(thread[1]), len(stack) - 1, begun, event.ts)


def _frame(tid: int, depth: int, begun: _Event, end_us: int) -> Frame:
    place = begun.args
    return Frame(tid, depth, begun.name, place.filename, place.line, 1000 * begun.ts, 1000 * end_us)
