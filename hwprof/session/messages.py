"""What the supervisor and its worker say to each other: JSON lines on a pipe of their own, and the order on disk."""

from __future__ import annotations

import contextlib
import os
import select
from collections import deque
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from hwprof.run.manifest import PassRecord, WorkloadRecord
from hwprof.session.plan import PassPlan
from hwprof.workload.spec import WorkloadSpec


class Phase(Enum):
    """What a pass is doing; the value is what the user reads. Between warming up and collecting results lies what is
    measured."""

    IMPORTING = "importing torch"
    BUILDING = "building the model"
    CHANGING = "making the variant, and comparing outputs"
    WAITING = "waiting for a quiet machine"
    WARMING_UP = "warming up"
    STARTING = "starting collectors"
    MEASURING = "measuring"
    COLLECTING = "collecting results"
    ADDING_UP = "adding up"
    DESCRIBING = "describing layers"
    READING = "reading what was counted"
    HALTING = "keeping the layers done; Ctrl-C again: not even these"
    KEEPING = "keeping"


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is to do."""

    workload: WorkloadSpec
    plan: PassPlan
    folder: str  # for the pass's raw files and tables; exists
    describe: bool  # write the static layer table
    save_to: str | None  # where results (annotated images) go

    def after(self, built: WorkloadRecord | None) -> Order:
        """The same, with as much of the source as a worker before took; None: there was none."""
        if built is None or built.forwards is None:
            return self
        return msgspec.structs.replace(self, workload=msgspec.structs.replace(self.workload, forwards=built.forwards))

    def write(self, path: Path) -> None:
        """As JSON."""
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1))

    @classmethod
    def read(cls, path: Path) -> Order:
        """From JSON; raises ``msgspec.MsgspecError``."""
        return msgspec.json.decode(path.read_bytes(), type=cls)


GO_ON: Final = b"\n"
ENOUGH: Final = b"!"
"""What a worker is told by a byte, on a pipe of its own: that it is its turn (maybe twice), and that the user has asked
for the end."""


class PhaseBegins(msgspec.Struct, frozen=True, tag="phase"):
    """A new phase begins; ``total`` steps are expected where that is known."""

    phase: Phase
    total: int | None = None


class Reached(msgspec.Struct, frozen=True, tag="reached"):
    """So many of the phase's steps are done, and so many are expected by what is known now."""

    done: int
    total: int


class Step(msgspec.Struct, frozen=True, tag="step"):
    """One step of the phase is done."""


class Built(msgspec.Struct, frozen=True, tag="built"):
    """The workload stands."""

    workload: WorkloadRecord
    versions: dict[str, str]


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The worker gives up."""

    message: str
    remedy: str | None
    exit_code: int
    trace: str | None  # the traceback, where the failure was not foreseen
    foreseen_trace: str | None = None  # where it was: no log needs it, but who debugs a model of his own


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """The pass is done and its tables are written."""

    record: PassRecord
    tables: list[str]
    results: list[str]
    interrupted: str | None = None  # how far it came, where it was told to stop
    notes: list[str] = []  # on the workload


Message: TypeAlias = PhaseBegins | Reached | Step | Built | Failed | Finished

_decoder: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)


def encode(message: Message) -> bytes:
    """One line."""
    return msgspec.json.encode(message) + b"\n"


def decode(line: bytes) -> Message:
    """The message of a line; raises ``msgspec.MsgspecError``."""
    message: Message = _decoder.decode(line)
    return message


LOOK_UP_S: Final = 0.5


class Inbox:
    """The supervisor's end of the pipe.

    It looks up twice a second: a signal that comes just before a read, or to another thread, does not end that read,
    and a worker can be silent for a long time.
    """

    def __init__(self, descriptor: int, has_ended: Callable[[], bool] = lambda: False) -> None:
        """``has_ended``: whether the worker has. The pipe's end does not always tell: a process that the worker's code
        has forked may hold it."""
        self._descriptor = descriptor
        self._has_ended = has_ended
        self._lines: deque[bytes] = deque()
        self._rest: list[bytes] = []  # of a line that has not come whole

    def next(self) -> Message | None:
        """The next message, however long it takes; None when the worker is gone. After an exception (Ctrl-C) it goes on
        where it was. Lines that are no messages are passed over: a model's code may write to any descriptor."""
        while (line := self._next_line()) is not None:
            with contextlib.suppress(msgspec.MsgspecError, UnicodeError):
                return decode(line)
        return None

    def _next_line(self) -> bytes | None:
        while not self._lines:
            if not self._readable(LOOK_UP_S):
                if not self._has_ended():
                    continue
                if not self._readable(0):  # its last words may have come just now
                    return None
            data = os.read(self._descriptor, 1 << 16)
            if not data:
                return None
            first, *others = data.split(b"\n")
            self._rest.append(first)
            if others:
                whole = [b"".join(self._rest), *others[:-1]]
                self._rest = [others[-1]]
                self._lines.extend(whole)
        return self._lines.popleft()

    def _readable(self, within_s: float) -> bool:
        return bool(select.select([self._descriptor], [], [], within_s)[0])
