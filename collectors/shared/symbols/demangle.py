"""C++ names as they are written, by the C++ library that the process has loaded anyway.

The packages that demangle call the same function of the same library; before that they search it by starting compilers
and ``ldconfig``, which a process that is being measured, or instrumented, must not do.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, Final

LIBRARIES: Final = ("libstdc++.so.6", "libc++abi.so.1", "libc++.so.1")
MANGLED: Final = ("_Z", "___Z")
"""How a name of the Itanium C++ ABI begins."""


def demangle(name: str) -> str:
    """A C++ name as it is written; as it is where it is none, or where the process has no C++ library to ask."""
    demangler = _demangler() if name.startswith(MANGLED) else None
    return (demangler.demangled(name) if demangler is not None else None) or name


class _Demangler:
    """``__cxa_demangle`` of a library. Raises ``OSError`` or ``AttributeError`` where there is none."""

    def __init__(self, library: str) -> None:
        self._demangle: Any = ctypes.CDLL(library)["__cxa_demangle"]
        self._demangle.restype = ctypes.c_void_p
        self._demangle.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p]
        self._free: Any = ctypes.CDLL(None)["free"]
        self._free.restype, self._free.argtypes = None, [ctypes.c_void_p]

    def demangled(self, name: str) -> str | None:
        made = self._demangle(name.encode(), None, None, None)
        if not made:
            return None
        try:
            return ctypes.string_at(made).decode(errors="replace")
        finally:
            self._free(made)


@cache
def _demangler() -> _Demangler | None:
    for library in LIBRARIES:
        try:
            return _Demangler(library)
        except (OSError, AttributeError):
            continue
    return None
