"""A model's code in a copy of this process, of which its answer comes back, and before that how far it is: that code
may end its process in silence, crash it, close its streams, print what it likes, and leave processes running."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Final, NoReturn, TypeAlias

import msgspec

from hwprof import keeper, processes
from hwprof.errors import HwprofError
from hwprof.printable import printable
from hwprof.session.interruption import heed_none, how_it_ended
from hwprof.session.last_words import last_words
from hwprof.session.messages import Failed, PhaseBegins, Step
from hwprof.session.reporter import Reporter

NOTHING: Final = nullcontext()

LOOK_EVERY_MS: Final = 100
"""A signal that comes just before a wait does not end it."""

READ_BYTES: Final = 1 << 16
LONGEST_LINE: Final = 1 << 12
"""Bytes of what is printed without an end of line."""


class Answer(msgspec.Struct, tag="answer"):
    """What was asked for."""

    value: bytes


HowFar: TypeAlias = PhaseBegins | Step
"""What the copy tells before it has its answer."""

Tell: TypeAlias = Callable[[HowFar], None]
Work: TypeAlias = Callable[[Tell], bytes]
_Said: TypeAlias = Answer | Failed | HowFar
_decode: Final = msgspec.json.Decoder(_Said).decode


def answer_of(
    work: Work,
    printed: Callable[[str], None],
    heard: Tell = lambda _: None,
    meanwhile: AbstractContextManager[object] = NOTHING,
) -> bytes:
    """What ``work`` returns in the copy. ``printed`` gets each line that the copy prints, fit for a terminal, and
    ``heard`` what ``work`` tells of how far it is. ``meanwhile`` is entered once the copy is made, as it may start
    threads, and left when that has ended. Raises ``HwprofError`` where it failed or ended before, ``OSError`` where
    there can be no copy, and ``KeyboardInterrupt``, with which the copy ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # whoever starts hwprof may ignore it: nobody knew how it ended
    sys.stdout.flush()
    sys.stderr.flush()
    original = os.getpid()
    hears, tells = os.pipe()
    shows, prints = os.pipe()
    try:
        pid = os.fork()
        if not pid:
            _be_the_keeper(work, original, tells, prints)
    finally:
        os.close(tells)
        os.close(prints)
    ear = _Ear(pid, hears, shows, printed, heard)
    try:
        with meanwhile:
            status = ear.listen()
    finally:
        ear.close()
    if isinstance(ear.answer, Answer):
        return ear.answer.value
    if ear.answer is not None:
        raise _failure(ear.answer)
    raise HwprofError(f"the process of the model ended {how_it_ended(status)}")


def _failure(said: Failed) -> HwprofError:
    unforeseen = said.trace is not None and said.remedy is None
    error = HwprofError(said.message, "--debug shows where" if unforeseen else said.remedy)
    error.exit_code = said.exit_code
    error.trace = said.trace or said.foreseen_trace
    return error


def _be_the_keeper(work: Work, original: int, tells: int, prints: int) -> NoReturn:
    """Of the copy, so that what the model's code leaves behind is known from what else this process has started."""
    try:
        heed_none()
        gone = keeper.begin(original)
        me = os.getpid()
        pid = os.fork()
        if not pid:
            _be_the_copy(work, me, tells, prints)
        os.close(tells)
        os.close(prints)
        keeper.keep(pid, gone)
    finally:
        os._exit(1)


def _be_the_copy(work: Work, original: int, tells: int, prints: int) -> NoReturn:
    try:
        processes.end_with_parent(original)
        os.dup2(prints, 1)
        os.dup2(prints, 2)
        me = os.getpid()
        said: Answer | Failed
        try:
            said = Answer(work(Reporter(os.dup(tells)).send))
        except BaseException as error:
            said = last_words(error, os.devnull)
        processes.end_copy(me)
        data = msgspec.json.encode(said) + b"\n"
        while data:
            data = data[os.write(tells, data) :]
        for stream in (sys.stdout, sys.stderr):
            with suppress(BaseException):  # it may have become anything
                stream.flush()
    finally:
        os._exit(1)  # whoever has its words needs no exit code


class _Ear:
    """The copy as the process that waits for it has it. ``pid``: its keeper's, which ends as the copy does."""

    def __init__(self, pid: int, hears: int, shows: int, printed: Callable[[str], None], heard: Tell) -> None:
        self.answer: Answer | Failed | None = None
        self._heard = heard
        self._words = bytearray()  # a line that has not come whole
        self._pid = pid
        self._status: int | None = None
        self._hears, self._shows = hears, shows
        self._printed = printed
        self._line = bytearray()
        self._poll = select.poll()
        for descriptor in (hears, shows):
            self._poll.register(descriptor, select.POLLIN)

    def listen(self) -> int:
        """Until it has ended, and then to what it has left to be read; its exit code, negative for a signal."""
        while self._status is None:
            self._read(LOOK_EVERY_MS)
            done, status = os.waitpid(self._pid, os.WNOHANG)
            self._status = os.waitstatus_to_exitcode(status) if done else None
        while self._read(0):
            pass
        self._print(b"\n" if self._line else b"")
        return self._status

    def close(self) -> None:
        """Ends it where it has not ended."""
        if self._status is None:
            while not os.waitpid(self._pid, os.WNOHANG)[0]:
                processes.kill(processes.descendants(self._pid))
                time.sleep(LOOK_EVERY_MS / 10_000)
        os.close(self._hears)
        os.close(self._shows)

    def _read(self, within_ms: int) -> bool:
        some = False
        for descriptor, _ in self._poll.poll(within_ms):
            data = os.read(descriptor, READ_BYTES)
            some = some or bool(data)
            if not data:
                self._poll.unregister(descriptor)
            elif descriptor == self._hears:
                self._hear(data)
            else:
                self._print(data)
        return some

    def _hear(self, data: bytes) -> None:
        """Lines that are no messages are passed over: a model's code may write to any descriptor."""
        first, *others = data.split(b"\n")
        self._words += first
        for line in others:
            whole, self._words = bytes(self._words), bytearray(line)
            with suppress(msgspec.MsgspecError, UnicodeError):
                said = _decode(whole)
                if isinstance(said, (Answer, Failed)):
                    self.answer = said
                else:
                    self._heard(said)

    def _print(self, data: bytes) -> None:
        *lines, rest = (self._line + data).split(b"\n")
        if len(rest) > LONGEST_LINE:
            lines, rest = [*lines, rest], bytearray()
        self._line = bytearray(rest)
        for line in lines:
            self._printed(printable(line.decode(errors="replace")))
