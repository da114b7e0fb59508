"""The user's Ctrl-C, told apart from a ``KeyboardInterrupt`` that a model's or a collector's code raises itself."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time
from contextlib import suppress
from types import FrameType
from typing import Any, Final, NoReturn

AGAIN_S: Final = 0.01
"""After so long what was swallowed comes once more: the code that Python called has returned by then, as a rule."""


class Interrupt(KeyboardInterrupt):
    """From outside: nobody's guard against foreign code may take it for that code's failure."""


def tell_apart() -> None:
    """From now on Ctrl-C raises ``Interrupt`` in this process; where it is ignored, or somebody heeds it in another
    way, it stays so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


def come_again() -> None:
    """Where Python itself calls code (a weak reference's callback, a destructor), it prints what that raises, and goes
    on: an interruption that comes just then would be a traceback, and lost. From now on it comes once more."""
    print_it, main_thread = sys.unraisablehook, _thread.get_ident()

    def heed(unraisable: Any) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt) and _thread.get_ident() == main_thread:
            _come_again(unraisable.exc_value)
        else:
            print_it(unraisable)

    sys.unraisablehook = heed


def _come_again(swallowed: KeyboardInterrupt) -> None:
    number = getattr(swallowed, "number", signal.SIGINT)

    def raise_it(_: int, __: FrameType | None) -> NoReturn:
        signal.signal(number, before)
        raise swallowed

    def send() -> None:
        time.sleep(AGAIN_S)
        os.kill(os.getpid(), number)

    before = signal.signal(number, raise_it)
    with suppress(RuntimeError):  # no thread can be had; whoever asks once more is heard
        _thread.start_new_thread(send, ())  # ``threading`` would be imported, and that may be what was interrupted


def unwrapped(error: BaseException) -> BaseException:
    """Before 3.12 Python makes a ``RuntimeError`` of what comes while it makes a class (``__set_name__``): of an
    ``Interrupt`` that did, that; of anything else itself."""
    cause = error.__cause__
    return cause if isinstance(error, RuntimeError) and isinstance(cause, Interrupt) else error


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise Interrupt
