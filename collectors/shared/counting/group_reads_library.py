"""The C function that reads edges, ``group_reads.c``, as a library that is compiled when it is first needed."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

from hwprof import c_compiler
from hwprof.c_compiler import NoLibraryError, cached, compiled, compiler, is_whole
from hwprof.collector.contract import Tool

__all__ = ["NoLibraryError", "library", "status", "tool"]

NAME: Final = "group_reads"


def status() -> str:
    """Whether the library can be had here: "native", or "python" and why; compiles nothing."""
    try:
        _check_interpreter()
        if not is_whole(cached(NAME, _source())):
            return f"native (compiled at first use by {compiler()[0]})"
        library()
    except NoLibraryError as reason:
        return f"python ({reason})"
    return "native"


@cache
def library() -> ctypes.PyDLL:
    """The compiled source, from the cache or fresh. Raises ``NoLibraryError``."""
    _check_interpreter()
    path = compiled(NAME, _source())
    try:
        return _declared(ctypes.PyDLL(str(path)))
    except OSError as error:
        raise NoLibraryError(f"the compiled reader does not load: {error}") from error


def tool() -> Tool:
    """The compiler of ``library``. Raises ``NoLibraryError``."""
    return c_compiler.tool(cached(NAME, _source()))


def _check_interpreter() -> None:
    if sys.implementation.name != "cpython":
        raise NoLibraryError(f"the interpreter is {sys.implementation.name}")
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise NoLibraryError("the interpreter has no lock")


def _source() -> bytes:
    return Path(__file__).with_name("group_reads.c").read_bytes()


def _declared(code: ctypes.PyDLL) -> ctypes.PyDLL:
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    where = ctypes.POINTER(ctypes.c_void_p)
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "group_reads_new": (pointer, []),
        "group_reads_reader": (pointer, [pointer, number, number]),
        "group_reads_function": (ctypes.py_object, [pointer]),
        "group_reads_map": (pointer, [number]),
        "group_reads_unmap": (None, [pointer]),
        "group_reads_rung": (ctypes.c_uint32, [pointer]),
        "group_reads_begin": (
            number,
            [pointer, size, ctypes.POINTER(number), ctypes.POINTER(size), ctypes.POINTER(pointer)],
        ),
        "group_reads_order": (number, [pointer, size, ctypes.POINTER(ctypes.c_uint32)]),
        "group_reads_reserve": (number, [pointer, size, size]),
        "group_reads_rows": (size, [pointer, where]),
        "group_reads_marks": (size, [pointer, where]),
        "group_reads_clear": (None, [pointer]),
        "group_reads_bell_failed": (number, [pointer]),
        "group_reads_close": (None, [pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(code, name)
        function.restype, function.argtypes = result, arguments
    return code
