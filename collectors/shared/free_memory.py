"""Memory that was freed, and that the C library keeps for what is asked for next."""

from __future__ import annotations

import ctypes
from contextlib import suppress


def give_back() -> None:
    """To the kernel: not while a model runs, which would get it again page by page, and have the page faults."""
    with suppress(AttributeError):  # another C library than glibc
        ctypes.CDLL(None).malloc_trim(0)
