"""The user's Ctrl-C, told apart from a ``KeyboardInterrupt`` that a model's or a collector's code raises itself."""

from __future__ import annotations

import signal
from types import FrameType
from typing import NoReturn


class Interrupt(KeyboardInterrupt):
    """From outside: nobody's guard against foreign code may take it for that code's failure."""


def tell_apart() -> None:
    """From now on Ctrl-C raises ``Interrupt`` in this process; where it is ignored, or somebody heeds it in another
    way, it stays so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise Interrupt
