"""The process's handler of SIGSEGV: that of the C module, which finds out that code is written."""

from __future__ import annotations

import ctypes
import signal
from typing import Final

SA_SIGINFO: Final = 4
SA_ONSTACK: Final = 0x08000000
SIGSET_BYTES: Final = 128


class _Action(ctypes.Structure):
    """glibc's struct sigaction on x86-64."""

    handler: int | None
    flags: int
    _fields_ = [
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_uint8 * SIGSET_BYTES),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    ]


def handle_faults(handler: int) -> int:
    """From now on the function at that address handles them; the address of the handler before, 0 for the default.
    Raises ``OSError``."""
    before, wanted = _Action(), _Action(handler=handler, flags=SA_SIGINFO | SA_ONSTACK)
    library = ctypes.CDLL(None, use_errno=True)
    if library.sigaction(int(signal.SIGSEGV), ctypes.byref(wanted), ctypes.byref(before)) != 0:
        raise OSError(ctypes.get_errno(), "no handler of faults")
    return before.handler or 0
