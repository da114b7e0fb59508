"""What ends ``hwprof collect`` from outside: Ctrl-C, which Python raises by itself, and signals that end a process."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Final, NoReturn

from hwprof.errors import HwprofError
from hwprof.interrupts import Interrupt

ENDING: Final = (signal.SIGTERM, signal.SIGHUP)

AGAIN: Final = "keeping what is measured; Ctrl-C again: not even that"

LONGEST_HELD_S: Final = 5.0
"""Whoever sends one that ends a process (Docker, CI) may kill it 10 s later, and to end what is under way takes time,
too."""


PRODUCTS_S: Final = 3.0
"""So long the trace and the report of what was kept may take then."""


class EndedBySignal(Interrupt):
    """As Ctrl-C, but whoever sent it may not wait long."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {name_of(number)}")
        self.number = number


@contextmanager
def signals_interrupt() -> Iterator[list[int]]:
    """Inside, the first of the signals that end a process raises ``EndedBySignal``; those that come while that is
    tidied up are not heeded. One that was ignored from the start (``nohup``) stays so. The list has the first one's
    number from then on: where it came within a library's code, that may have swallowed what was raised."""
    terminals = _terminals()
    came: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        _leave_dead(terminals)
        came.append(number)
        _raise_once(number, frame)

    before = {number: signal.getsignal(number) for number in ENDING}
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, interrupt)
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


def heed_none() -> None:
    """From now on this process, a copy, leaves Ctrl-C and those to the one that was started, and ends with it. What it
    starts itself does not inherit that."""
    for number in (signal.SIGINT, *ENDING):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _heed_no_more)


def _heed_no_more(_: int, __: FrameType | None) -> None:
    pass


def _raise_once(number: int, _: FrameType | None) -> NoReturn:
    for other in ENDING:
        if signal.getsignal(other) is not signal.SIG_IGN:
            signal.signal(other, _heed_no_more)  # were it ignored, Python would complain of one that is on its way
    raise EndedBySignal(number)


def _terminals() -> list[int]:
    return [descriptor for descriptor in (1, 2) if os.isatty(descriptor)]


def _leave_dead(terminals: list[int]) -> None:
    """A terminal that is gone fails whoever writes to it, in the midst of tidying up."""
    for descriptor in terminals:
        if not os.isatty(descriptor):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)


@contextmanager
def comes_again(interrupt: BaseException | None, after_s: float = PRODUCTS_S) -> Iterator[None]:
    """Inside, a signal that has ended what was measured comes once more after some time: what is made of that
    afterwards can be made again, and whoever has sent it may not wait. Ctrl-C does not."""
    if not isinstance(interrupt, EndedBySignal):
        yield
        return
    over, number, main_thread = threading.Event(), interrupt.number, threading.main_thread().ident or 0

    def send() -> None:
        if not over.wait(after_s):
            signal.pthread_kill(main_thread, number)

    thread = threading.Thread(target=send, name="hwprof-comes-again", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class InterruptionError(HwprofError):
    """Ctrl-C or a signal that ends a process, in words; the exit code is the shell's for that signal."""

    def __init__(self, interrupt: KeyboardInterrupt, kept: str = "") -> None:
        super().__init__("; ".join(part for part in (str(interrupt) or "interrupted", kept) if part))
        number = interrupt.number if isinstance(interrupt, EndedBySignal) else signal.SIGINT
        self.exit_code = 128 + number


def _tell_nobody(_: str) -> None:
    """Where nobody waits for a word."""


class Held:
    """Ctrl-C and the signals that end a process while something that is measured is brought to its end, which takes
    seconds: the first one is noted (``came``), the second one raises as ever. One that ends a process comes a second
    time by itself: what is brought to its end may hang, and who has sent it sends no more."""

    def __init__(
        self,
        tell: Callable[[str], object] = _tell_nobody,
        longest_s: float = LONGEST_HELD_S,
        hurry: Callable[[], object] = lambda: None,
    ) -> None:
        """``tell`` is called from another thread, with what becomes of the signal that has come; ``hurry`` when one
        comes, by its handler."""
        self.came = False
        self._tell = tell
        self._longest_s = longest_s
        self._hurry = hurry
        self._noted: SimpleQueue[int | None] = SimpleQueue()  # a signal's handler may put, whatever it came upon
        self._thread: threading.Thread | None = None
        self._heed: Callable[[], object] = partial(signal.default_int_handler, signal.SIGINT, None)
        self._before: dict[int, Callable[[int, FrameType | None], object]] = {}
        self._terminals: list[int] = []

    def begin(self) -> None:
        """From now on. What is ignored, or ends the process at once, stays so."""
        if self._before or self.came:
            return
        self._terminals = _terminals()
        for number in (signal.SIGINT, *ENDING):
            before = signal.getsignal(number)
            if callable(before):
                self._before[number] = before
        if self._before:
            # before any can come: a handler may come upon the lock that the start of a thread takes
            self._thread = threading.Thread(target=self._follow, name="hwprof-held", daemon=True)
            self._thread.start()
        for held in self._before:
            signal.signal(held, self._note)

    def end(self) -> None:
        """They raise again; may be called more than once."""
        self._let_go()
        if self._thread is not None:
            self._noted.put(None)
            self._thread.join()  # else the one that has come might come again when it has been heeded
            self._thread = None

    def _let_go(self) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        self._before = {}

    def take(self, raised: KeyboardInterrupt) -> None:
        """One that has been raised while something was still measured counts as one that comes from now on."""
        if not isinstance(raised, EndedBySignal):
            self.came = True
            self._tell(AGAIN)
            return
        for number in ENDING:
            if signal.getsignal(number) is _heed_no_more:
                signal.signal(number, _raise_once)
        self.begin()
        self._note(raised.number, None)

    def heed(self) -> None:
        """Raises what has come, as it would have been raised then."""
        if self.came:
            self._heed()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.came, self._heed = True, partial(self._before[number], number, None)
        if number != signal.SIGINT:
            _leave_dead(self._terminals)
        for one in self._before:
            signal.signal(one, self._raise)
        self._noted.put(number)
        self._hurry()

    def _raise(self, number: int, frame: FrameType | None) -> None:
        """The second one, which does not come a third time by itself: it would come upon what the second one ends."""
        before = self._before[number]
        self._let_go()
        self._noted.put(None)
        before(number, frame)

    def _follow(self) -> None:
        """Tells of the one that comes; sends it again where it is held for too long."""
        number = self._noted.get()
        if number is None:
            return
        if number == signal.SIGINT:
            self._tell(AGAIN)
            return
        self._tell(f"{name_of(number)} came: keeping what is measured, if that takes {self._longest_s:g} s at most")
        try:
            self._noted.get(timeout=self._longest_s)
        except Empty:  # to the thread that heeds it: it may sleep
            self._tell(f"{self._longest_s:g} s are over: what this pass measured is lost; Ctrl-C would have kept it")
            signal.pthread_kill(threading.main_thread().ident or 0, number)


def how_it_ended(status: int) -> str:
    """Of a process of which more was expected. ``status``: its exit code, negative for a signal."""
    if status >= 0:
        return f"with exit code {status} before it was done: the model's code, or a library's, ended the process"
    how = f"by {name_of(-status)}"
    if -status == signal.SIGKILL:
        how += ", as the kernel does when memory runs out, or a limit on processor time (ulimit -t)"
    return how


def name_of(number: int) -> str:
    """``SIGTERM``; of a signal without a name (those for real-time use) ``signal 40``."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
