"""The process's handler of SIGSEGV: that of the C module, which finds out that code is written.

It is set past the C library, whose ``sigaction`` is frida's while it is loaded: frida keeps to itself what is set that
way, and calls the last one for what it cannot handle. So a handler that the model sets later (``faulthandler``, say)
does not take this one's place, and still gets all faults that are not ours.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
from typing import Final

SYS_RT_SIGACTION: Final = 13
SIGSET_BYTES: Final = 8


class _Action(ctypes.Structure):
    """The kernel's struct sigaction on x86-64."""

    handler: int | None
    restorer: int | None
    _fields_ = [
        ("handler", ctypes.c_void_p),
        ("flags", ctypes.c_ulong),
        ("restorer", ctypes.c_void_p),
        ("mask", ctypes.c_uint64),
    ]


def handle_faults(handler: int) -> int:
    """From now on the function at that address handles them, as the one before was called; the address of that.
    Raises ``OSError``."""
    action = _Action()
    _rt_sigaction(None, action)
    before = action.handler or 0
    if not action.restorer:
        raise OSError(errno.ENOTSUP, "frida handles no faults")
    action.handler = handler
    _rt_sigaction(action, None)
    return before


def _rt_sigaction(wanted: _Action | None, found: _Action | None) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    given = [ctypes.byref(action) if action is not None else None for action in (wanted, found)]
    if library.syscall(SYS_RT_SIGACTION, int(signal.SIGSEGV), *given, ctypes.c_size_t(SIGSET_BYTES)) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
