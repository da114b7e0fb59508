"""Compiles ``sweep.c`` with the system's compiler when it is first needed, and keeps it in the user's cache folder.

It needs no headers of Python, so a compiler is all that a machine must have.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import shlex
import shutil
import sys
import sysconfig
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Final

SOURCE: Final = Path(__file__).with_name("sweep.c")
COMPILERS: Final = ("cc", "gcc", "clang")
FLAGS: Final = ("-O2", "-shared", "-fPIC")
COMPILE_TIMEOUT_S: Final = 60


class NoLibraryError(Exception):
    """Why edges are not read by the C function, in a few words."""


def status() -> str:
    """Whether the library can be had here: "native", or "python" and why; compiles nothing."""
    try:
        _check_interpreter()
        if not _cached().exists():
            return f"native (compiled at first use by {_compiler()[0]})"
        library()
    except NoLibraryError as reason:
        return f"python ({reason})"
    return "native"


@cache
def library() -> ctypes.PyDLL:
    """The compiled source, from the cache or fresh. Raises ``NoLibraryError``."""
    _check_interpreter()
    path = _cached()
    if not path.exists():
        _compile(path)
    try:
        return _declared(ctypes.PyDLL(str(path)))
    except OSError as error:
        raise NoLibraryError(f"the compiled reader does not load: {error}") from error


def _check_interpreter() -> None:
    if sys.implementation.name != "cpython":
        raise NoLibraryError(f"the interpreter is {sys.implementation.name}")
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise NoLibraryError("the interpreter has no lock")


def _cached() -> Path:
    """Where the library is or belongs: named after the source, the way that it is compiled and the platform. It is code
    that will be run, so a folder that somebody else may write to does not do."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hwprof"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = folder.stat()
    except (OSError, RuntimeError) as error:
        raise NoLibraryError(f"no cache folder: {error}") from error
    if state.st_uid != os.geteuid() or state.st_mode & 0o022:
        raise NoLibraryError(f"others may write to the cache folder {folder}")
    built_from = SOURCE.read_bytes() + " ".join((*FLAGS, str(sysconfig.get_config_var("SOABI")))).encode()
    return folder / f"sweep-{hashlib.sha256(built_from).hexdigest()[:16]}.so"


def _compiler() -> list[str]:
    try:
        chosen = shlex.split(os.environ.get("CC", ""))
    except ValueError as error:
        raise NoLibraryError(f"CC is no command: {error}") from error
    if chosen:
        return chosen
    for name in COMPILERS:
        if shutil.which(name):
            return [name]
    raise NoLibraryError("no C compiler")


def _compile(target: Path) -> None:
    """Builds beside the target and renames: of several processes that build at once, each has a whole file."""
    import subprocess  # rarely needed

    compiler = _compiler()
    try:
        handle, name = tempfile.mkstemp(suffix=".so", dir=target.parent)
    except OSError as error:
        raise NoLibraryError(f"no cache folder: {error}") from error
    os.close(handle)
    try:
        command = [*compiler, *FLAGS, "-o", name, str(SOURCE)]
        subprocess.run(command, check=True, capture_output=True, timeout=COMPILE_TIMEOUT_S, stdin=subprocess.DEVNULL)
        Path(name).replace(target)
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or b""
        first = said.decode(errors="replace").strip().partition("\n")[0]
        raise NoLibraryError(f"the C compiler failed: {first or error}") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()


def _declared(code: ctypes.PyDLL) -> ctypes.PyDLL:
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    where = ctypes.POINTER(ctypes.c_void_p)
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "sweep_new": (pointer, []),
        "sweep_reader": (pointer, [pointer, number, number]),
        "sweep_function": (ctypes.py_object, [pointer]),
        "sweep_map": (pointer, [number]),
        "sweep_unmap": (None, [pointer]),
        "sweep_rung": (ctypes.c_uint32, [pointer]),
        "sweep_begin": (
            number,
            [pointer, size, ctypes.POINTER(number), ctypes.POINTER(size), ctypes.POINTER(pointer)],
        ),
        "sweep_order": (number, [pointer, size, ctypes.POINTER(ctypes.c_uint32)]),
        "sweep_reserve": (number, [pointer, size, size]),
        "sweep_rows": (size, [pointer, where]),
        "sweep_marks": (size, [pointer, where]),
        "sweep_clear": (None, [pointer]),
        "sweep_bell_failed": (number, [pointer]),
        "sweep_close": (None, [pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(code, name)
        function.restype, function.argtypes = result, arguments
    return code
