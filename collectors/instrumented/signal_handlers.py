"""Signals' handlers as the kernel has them, past the C library, whose ``sigaction`` is frida's while it is loaded."""

from __future__ import annotations

import ctypes
import os
import signal
from typing import Final

SYS_RT_SIGACTION: Final = 13
SIGSET_BYTES: Final = 8

SIGNALS: Final = 65
"""One more than the last one's number."""

OF_FRIDA: Final = (
    *(signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV, signal.SIGSYS, signal.SIGTRAP),
)
OF_C_LIBRARY: Final = (32, 33)
"""It keeps them for itself."""


class Action(ctypes.Structure):
    """The kernel's struct sigaction on x86-64."""

    handler: int | None
    restorer: int | None
    _fields_ = [
        ("handler", ctypes.c_void_p),
        ("flags", ctypes.c_ulong),
        ("restorer", ctypes.c_void_p),
        ("mask", ctypes.c_uint64),
    ]


def rt_sigaction(number: int, wanted: Action | None, found: Action | None) -> None:
    """The system call. Raises ``OSError``."""
    library = ctypes.CDLL(None, use_errno=True)
    given = [ctypes.byref(action) if action is not None else None for action in (wanted, found)]
    if library.syscall(SYS_RT_SIGACTION, int(number), *given, ctypes.c_size_t(SIGSET_BYTES)) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def watched_signals() -> list[int]:
    """Those whose handlers are anybody's."""
    others = {*OF_FRIDA, *OF_C_LIBRARY, signal.SIGKILL, signal.SIGSTOP}
    return [number for number in range(1, SIGNALS) if number not in others]


def call_by(address: int, handlers: ctypes.Array[ctypes.c_uint64]) -> None:
    """From now on the function at that address is called in the place of every handler, which it finds in ``handlers``.
    Raises ``OSError``."""
    for number in watched_signals():
        action = Action()
        rt_sigaction(number, None, action)
        handler = action.handler or signal.SIG_DFL
        if handler in (signal.SIG_DFL, signal.SIG_IGN, address):
            continue
        handlers[number] = handler
        action.handler = address
        rt_sigaction(number, action, None)
